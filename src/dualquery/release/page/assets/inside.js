// Where numbers lie inside the bins of a column: the twin of `release/asking/inside.py`.
"use strict";
Object.assign(dualquery, (() => {
  class Numbers {
    constructor(payload, attribute) {
      const read = (name) => payload && payload[name] && dualquery.numbersOf(payload[name]);
      this.within = !!payload;
      this.mean = payload ? read("mean") : Float64Array.from(attribute.values, Number);
      this.least = payload ? payload.least : Math.min(...this.mean);
      this.most = payload ? payload.most : Math.max(...this.mean);
      if (!payload) return;
      this.variance = read("variance");
      this.narrow = read("narrow");
      this.start = payload.start;
      [this.low, this.high] = [read("low"), read("high")];
      this.shares = read("shares");
      this.means = read("means");
      this.tilt = read("tilt");
      this.logarithmic = payload.logarithmic;
      this.whole = payload.whole;
      this.rows = payload.rows;  // null where nothing was measured
      this.whole_of = read("whole_of");
      this.of_mean = read("of_mean");
      this.blocks = payload.blocks && payload.blocks.map(dualquery.numbersOf);
    }

    // The first place at which a share of all numbers is reached, and how far inside it.
    place(joint, wanted) {
      let heights, order = null;
      if (this.within) {
        heights = new Float64Array(this.shares.length);
        for (let b = 0; b + 1 < this.start.length; b++) {
          for (let i = this.start[b]; i < this.start[b + 1]; i++) {
            heights[i] = joint[b] * this.shares[i];
          }
        }
      } else {
        order = Array.from(this.mean, (_, i) => i).sort((a, b) => this.mean[a] - this.mean[b] || a - b);
        heights = Float64Array.from(order, (code) => joint[code]);
      }
      const ends = new Float64Array(heights.length);
      heights.reduce((total, height, i) => (ends[i] = total + height), 0);
      const goal = Math.min(Math.max(wanted, 0), 1) * ends[ends.length - 1];
      let first = 0, last = heights.length - 1;
      while (!(heights[first] > 0)) first += 1;
      while (!(heights[last] > 0)) last -= 1;
      let place = ends.findIndex((end) => end >= goal);
      place = Math.min(Math.max(place < 0 ? last : place, first), last);
      const part = (goal - (ends[place] - heights[place])) / heights[place];
      return {place: order ? order[place] : place, part: Math.min(Math.max(part, 0), 1)};
    }

    quantile(joint, wanted) {
      const {place, part} = this.place(joint, wanted);
      if (!this.within) return this.mean[place];
      const tilt = this.tilt ? this.tilt[place] : 0;
      const even = Math.abs(tilt) > 1e-6 ? Math.log1p(part * Math.expm1(tilt)) / tilt : part;
      const uniform = Math.min(Math.max(even, 0), 1 - 2 ** -53);
      const [low, high] = [this.low[place], this.high[place]];
      const found = this.logarithmic.includes(place) ? low * (high / low) ** uniform
        : low + uniform * (high - low);
      return this.whole ? Math.min(Math.max(Math.floor(found), low), high - 1)
        : Math.min(Math.max(found, low), high);
    }

    // Per code, which part of its numbers lies below a quantile.
    partsBelow(joint, wanted) {
      const {place, part} = this.place(joint, wanted);
      if (!this.within) return this.mean.map((m) => (m <= this.mean[place] ? 1 : 0));
      return this.mean.map((_, b) => {
        let weight = 0;
        for (let i = this.start[b]; i < this.start[b + 1]; i++) {
          weight += i < place ? this.shares[i] : i === place ? this.shares[i] * part : 0;
        }
        return weight;
      });
    }

    // The variance of a mean that stems from where numbers lie inside the bins.
    varianceOfMean(joint, every) {
      if (!this.within || this.rows === null) return 0;
      const total = dualquery.sum(joint), shares = joint.map((j) => j / total);
      let moved = 0, narrow = 0;
      const bins = shares.length;
      for (let a = 0; a < bins; a++) {
        narrow += (shares[a] ** 2 / Math.max(every[a], 1e-300)) * this.narrow[a];
        for (let b = 0; b < bins; b++) moved += shares[a] * shares[b] * this.of_mean[a * bins + b];
      }
      const slopes = this.slopes(joint, every);
      const steep = dualquery.sum(shares.map((s, b) => s * slopes[b] * this.variance[b]));
      return Math.max(moved, 0) + narrow / this.rows +
        this.chanceOfPart(joint, every, this.variance) + steep ** 2;
    }

    // The same for the share of the numbers below a quantile.
    varianceOfShare(joint, every, wanted) {
      if (!this.within || this.rows === null) return 0;
      const {place, part} = this.place(joint, wanted);
      const bin = this.start.findIndex((first) => first > place) - 1;
      const [first, end] = [this.start[bin], this.start[bin + 1]];
      const below = (i) => (i < place ? 1 : i === place ? part : 0);
      let middle = 0, along = 0, moved = 0;
      for (let i = first; i < end; i++) middle += this.shares[i] * below(i);
      const total = dualquery.sum(joint), share = joint[bin] / total;
      const scale = share / this.whole_of[bin], block = this.blocks[bin], size = end - first;
      for (let i = 0; i < size; i++) {
        const own = below(first + i) - middle;
        along += this.shares[first + i] * (this.means[first + i] - this.mean[bin]) * own;
        for (let j = 0; j <= i; j++) {
          const both = block[(i * (i + 1)) / 2 + j] * own * (below(first + j) - middle);
          moved += i === j ? both : 2 * both;
        }
      }
      const spread = joint.map((_, b) => (b === bin ? middle * (1 - middle) : 0));
      const slope = this.slopes(joint, every)[bin];
      return Math.max(scale ** 2 * moved, 0) + this.chanceOfPart(joint, every, spread) +
        (share * slope * along) ** 2;
    }

    chanceOfPart(joint, every, variance) {
      const total = dualquery.sum(joint);
      const found = joint.map((j, b) => {
        const part = Math.min(Math.max(j / Math.max(every[b], 1e-300), 0), 1);
        return j * variance[b] * (1 - part);
      });
      return dualquery.sum(found) / total ** 2 / this.rows;
    }

    slopes(joint, every) {
      const found = new Float64Array(joint.length), filled = [];
      joint.forEach((j, b) => { if (j > 0 && every[b] > 0) filled.push(b); });
      const count = filled.length;
      if (count < 2) return found;
      const often = filled.map((b) => joint[b] / every[b]), at = filled.map((b) => this.mean[b]);
      const step = (i) => (often[i + 1] - often[i]) / (at[i + 1] - at[i]);
      filled.forEach((b, i) => {
        let slope;
        if (i === 0) slope = step(0);
        else if (i === count - 1) slope = step(count - 2);
        else {
          const [left, right] = [at[i] - at[i - 1], at[i + 1] - at[i]];
          slope = (left ** 2 * often[i + 1] + (right ** 2 - left ** 2) * often[i] -
            right ** 2 * often[i - 1]) / (left * right * (left + right));
        }
        const reach = Math.sqrt(3 * Math.max(this.variance[b], 1e-300));
        found[b] = Math.min(Math.max(slope / often[i], -1 / reach), 1 / reach);
      });
      return found;
    }
  }

  return {Numbers};
})());
