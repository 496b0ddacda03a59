// How shares of cells move together if a dependence between two columns is off: the twin of
// `model/bends.py`. Pure functions; no document here.
"use strict";
Object.assign(dualquery, (() => {
  const SWEEPS = 8, MOST = 1 << 22;

  // The directions of a column with these shares, one list each.
  function scores(found, linear) {
    const total = found.reduce((a, b) => a + b, 0), size = found.length;
    const shares = Array.from(found, (share) => Math.max(share, 0) / (total > 0 ? total : 1));
    if (!linear && size > 2) {
      return shares.map((share, d) => shares.map((_, c) =>
        (share > 0 ? ((c === d ? 1 : 0) - share) / Math.sqrt(share * (size - 1)) : 0)));
    }
    let below = 0;
    const rank = shares.map((share) => (below += share) - share / 2);
    const middle = rank.reduce((sum, one, c) => sum + shares[c] * one, 0);
    const square = rank.reduce((sum, one, c) => sum + shares[c] * (one - middle) ** 2, 0);
    return [rank.map((one) => (square > 0 ? (one - middle) / Math.sqrt(square) : 0))];
  }

  // A direction of a pair without what moves shares of rows or columns; changed in place.
  function centre(moves, pair, rows, columns) {
    const I = rows.length, J = columns.length;
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      for (let i = 0; i < I; i++) {
        let sum = 0;
        for (let j = 0; j < J; j++) sum += moves[i * J + j] * pair[i * J + j];
        for (let j = 0; j < J; j++) moves[i * J + j] -= sum / (rows[i] > 0 ? rows[i] : 1);
      }
      for (let j = 0; j < J; j++) {
        let sum = 0;
        for (let i = 0; i < I; i++) sum += moves[i * J + j] * pair[i * J + j];
        for (let i = 0; i < I; i++) moves[i * J + j] -= sum / (columns[j] > 0 ? columns[j] : 1);
      }
    }
    return moves;
  }

  // What the directions of a table are made of: per pair of its axes, `at(cell)` gives the place in
  // the pair, and each direction has one number per place.
  function bends(shares, sizes, linear, missed) {
    const found = [], strides = sizes.map((_, a) => sizes.slice(a + 1).reduce((x, y) => x * y, 1));
    for (let a = 0; a < sizes.length; a++) {
      for (let b = a + 1; b < sizes.length; b++) {
        const error = missed(a, b), I = sizes[a], J = sizes[b];
        const at = (cell) => (Math.floor(cell / strides[a]) % I) * J
          + Math.floor(cell / strides[b]) % J;
        const pair = new Float64Array(I * J), rows = new Float64Array(I);
        const columns = new Float64Array(J);
        shares.forEach((share, cell) => { pair[at(cell)] += share; });
        pair.forEach((share, place) => {
          rows[Math.floor(place / J)] += share;
          columns[place % J] += share;
        });
        const one = scores(rows, linear[a]), other = scores(columns, linear[b]);
        if (!(error > 0) || one.length * other.length * shares.length > MOST) continue;
        const directions = one.flatMap((x) => other.map((y) => centre(
          Float64Array.from(pair, (_, p) => x[Math.floor(p / J)] * y[p % J]), pair, rows, columns)
          .map((move) => error * move)));
        found.push({at, count: I * J, directions});
      }
    }
    return found;
  }

  // The variance of a figure; `pulls` says per cell how much it moves, times the cell's share.
  function bent(found, pulls) {
    let square = 0;
    for (const {at, count, directions} of found) {
      const together = new Float64Array(count);
      pulls.forEach((pull, cell) => { together[at(cell)] += pull; });
      for (const moves of directions) {
        square += moves.reduce((sum, move, place) => sum + move * together[place], 0) ** 2;
      }
    }
    return square;
  }

  // The same for every leading cell as a share `ratio` of all, each of as many cells in a row.
  function bentCells(found, pulls, ratio) {
    const each = pulls.length / ratio.length, squares = new Float64Array(ratio.length);
    for (const {at, directions} of found) {
      for (const moves of directions) {
        const own = new Float64Array(ratio.length);
        let whole = 0;
        pulls.forEach((pull, cell) => {
          own[Math.floor(cell / each)] += pull * moves[at(cell)];
          whole += pull * moves[at(cell)];
        });
        own.forEach((one, i) => { squares[i] += (one - ratio[i] * whole) ** 2; });
      }
    }
    return squares;
  }

  return {bends, bent, bentCells};
})());
