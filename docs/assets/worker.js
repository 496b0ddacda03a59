// Browsers refuse workers to pages that are opened from a disk, and the search runs in one.
// There this stand-in runs the worker's script in a hidden frame of the same page instead.
(() => {
  if (location.protocol !== "file:") return;

  // As from a worker: a copy, and not before the sender is done.
  const later = (data, deliver) => {
    const event = new MessageEvent("message", { data: structuredClone(data) });
    setTimeout(() => deliver(event));
  };

  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.onmessage = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.importScripts = (...scripts) => scripts.reduce(
        (before, script) => before.then(() => this.load(script)), Promise.resolve());
      inside.postMessage = (data) => later(data, (event) => {
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      });
      this.load(new URL(address, document.baseURI).href).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }

    load(script) {
      return new Promise((done, failed) => {
        const element = this.frame.contentDocument.createElement("script");
        element.src = script;
        element.onload = done;
        element.onerror = failed;
        this.frame.contentDocument.body.append(element);
      });
    }

    postMessage(data) {
      if (!this.ready) return void this.waiting.push(data);
      later(data, (event) => this.frame.contentWindow?.dispatchEvent(event));
    }

    terminate() {
      this.frame.remove();
    }
  };
})();
