// Attributes that edges join, in the page itself: the twin of `model/forest/edges.py` and of
// `unrolled` in `release/components.py`. Pure functions; no document here.
"use strict";
Object.assign(dualquery, (() => {
  class Forest {
    // `own(position)` gives an attribute's own shares: entry k·size + c is component k's of code c.
    constructor(payload, sizes, own) {
      this.parent = payload.parent;
      this.groups = payload.groups;  // per attribute the group of each code
      this.ties = payload.ties.map((text) => text && dualquery.numbersOf(text));
      this.fit = payload.fit;  // per component
      this.sizes = sizes;
      this.own = own;
      this.counts = this.groups.map((of) => 1 + of.reduce((a, b) => Math.max(a, b), 0));
      this.kept = new Map();
    }

    root(position) {
      while (this.parent[position] >= 0) position = this.parent[position];
      return position;
    }

    // An attribute's own shares of groups in component k.
    ownGroups(position, k) {
      const size = this.sizes[position], own = this.own(position);
      const found = new Float64Array(this.counts[position]);
      for (let c = 0; c < size; c++) found[this.groups[position][c]] += own[k * size + c];
      return found;
    }

    // Shares of a child's groups given its parent's, in component k.
    given(child, k) {
      const rows = this.counts[this.parent[child]], columns = this.counts[child];
      const own = this.ownGroups(child, k), ties = this.ties[child];
      const first = this.fit[k] * rows * columns, found = new Float64Array(rows * columns);
      for (let i = 0; i < rows; i++) {
        let top = -Infinity, total = 0;
        for (let j = 0; j < columns; j++) top = Math.max(top, ties[first + i * columns + j]);
        for (let j = 0; j < columns; j++) {
          const share = own[j] * Math.exp(ties[first + i * columns + j] - top);
          found[i * columns + j] = share;
          total += share;
        }
        for (let j = 0; j < columns; j++) found[i * columns + j] /= total > 0 ? total : 1;
      }
      return found;
    }

    // Shares of what is asked at and below an attribute, given its groups: {axes, data}, with
    // data[g·cells + cell], the last axis fastest.
    upward(here, k, below, asked) {
      const groups = this.counts[here], size = this.sizes[here];
      let axes = [], cells = 1, data = new Float64Array(groups).fill(1);
      if (asked.has(here)) {
        const own = this.own(here), whole = this.ownGroups(here, k);
        axes = [here], cells = size, data = new Float64Array(groups * size);
        for (let c = 0; c < size; c++) {
          const g = this.groups[here][c];
          data[g * size + c] = own[k * size + c] / (whole[g] > 0 ? whole[g] : 1);
        }
      }
      for (const child of below.get(here) || []) {
        const part = this.upward(child, k, below, asked), given = this.given(child, k);
        const inner = this.counts[child], more = part.data.length / inner;
        const both = new Float64Array(groups * cells * more);
        for (let g = 0; g < groups; g++) {
          const message = new Float64Array(more);
          for (let i = 0; i < inner; i++) {
            const share = given[g * inner + i];
            for (let m = 0; m < more; m++) message[m] += share * part.data[i * more + m];
          }
          for (let c = 0; c < cells; c++) {
            for (let m = 0; m < more; m++) {
              both[(g * cells + c) * more + m] = data[g * cells + c] * message[m];
            }
          }
        }
        axes = [...axes, ...part.axes], cells *= more, data = both;
      }
      return {axes, data};
    }

    // The shares of all cells of attributes of one tree, in component k: {axes, data}.
    joint(attributes, k) {
      const below = new Map(), root = this.root(attributes[0]);
      for (let position of attributes) {
        while (position !== root) {
          const above = this.parent[position];
          if (!below.has(above)) below.set(above, []);
          if (below.get(above).includes(position)) break;
          below.get(above).push(position);
          position = above;
        }
      }
      const {axes, data} = this.upward(root, k, below, new Set(attributes));
      const groups = this.counts[root], cells = data.length / groups;
      const own = this.ownGroups(root, k), found = new Float64Array(cells);
      for (let g = 0; g < groups; g++) {
        for (let c = 0; c < cells; c++) found[c] += own[g] * data[g * cells + c];
      }
      return {axes, data: found};
    }

    // The same cells, with the attribute of the largest domain as the last axis.
    largestLast({axes, data}) {
      const sizes = axes.map((a) => this.sizes[a]), at = sizes.indexOf(Math.max(...sizes));
      const size = sizes[at], inner = sizes.slice(at + 1).reduce((a, b) => a * b, 1);
      const found = new Float64Array(data.length);
      for (let cell = 0; cell < data.length; cell++) {
        const i = cell % inner, c = Math.floor(cell / inner) % size;
        const outer = Math.floor(cell / (inner * size));
        found[(outer * inner + i) * size + c] = data[cell];
      }
      return {axes: [...axes.slice(0, at), ...axes.slice(at + 1), axes[at]], data: found};
    }

    // An attribute's shares in every component, whatever its parent's code is.
    table(position, components) {
      if (!this.kept.has(position)) {
        const size = this.sizes[position], table = new Float64Array(components * size);
        for (let k = 0; k < components; k++) table.set(this.joint([position], k).data, k * size);
        this.kept.set(position, table);
      }
      return this.kept.get(position);
    }

    // Components for questions about some attributes, which are independent in each of them. A
    // component becomes one for each cell of all joined attributes of a tree except the last.
    unrolled(model, attributes) {
      const trees = new Map();
      for (const a of attributes) {
        const root = this.root(a);
        trees.set(root, [...(trees.get(root) || []), a]);
      }
      let parts = Array.from(model.weights, (weight, k) => ({k, weight, codes: new Map()}));
      const last = new Map();
      for (const tree of trees.values()) {
        if (tree.length === 1) continue;
        // All are unrolled except the last one: that is the one with the largest domain.
        const joints = parts.length
          ? Array.from(model.weights, (_, k) => this.largestLast(this.joint(tree, k))) : [];
        const {axes} = joints[0], end = axes[axes.length - 1], size = this.sizes[end];
        const heads = axes.slice(0, -1), next = [];
        for (const part of parts) {
          const {data} = joints[part.k];
          for (let cell = 0; cell < data.length / size; cell++) {
            const shares = data.subarray(cell * size, (cell + 1) * size);
            const share = shares.reduce((a, b) => a + b, 0);
            if (!(share > 0)) continue;
            const codes = new Map(part.codes);
            let rest = cell;
            for (let i = heads.length - 1; i >= 0; i--) {
              codes.set(heads[i], rest % this.sizes[heads[i]]);
              rest = Math.floor(rest / this.sizes[heads[i]]);
            }
            codes.set(end, {shares, share});
            next.push({k: part.k, weight: part.weight * share, codes});
          }
        }
        last.set(end, true);
        parts = next;
      }
      const table = (position) => {
        const size = this.sizes[position], found = new Float64Array(parts.length * size);
        const plain = model.table(position);
        parts.forEach(({k, codes}, i) => {
          const own = codes.get(position);
          if (own === undefined) found.set(plain.subarray(k * size, (k + 1) * size), i * size);
          else if (last.has(position)) {
            own.shares.forEach((s, c) => { found[i * size + c] = s / own.share; });
          } else found[i * size + own] = 1;
        });
        return found;
      };
      return {
        components: parts.length,
        weights: Float64Array.from(parts, (part) => part.weight),
        tables: new Map(attributes.map((a) => [a, table(a)])),
      };
    }
  }

  return {Forest};
})());
