// What is shown, as a picture: drawn on a canvas, because a page without a network loads no image.
"use strict";
Object.assign(dualquery, (() => {
  const WIDTH = 1200, EDGE = 40, LINE = 34, MOST_ROWS = 40, MOST_COLUMNS = 12;
  const FONT = 'system-ui, "Segoe UI", Roboto, sans-serif';
  const colour = {page: "#ffffff", text: "#1a1f26", muted: "#545e6b", bar: "#4a8ae0",
                  mark: "#1a1f26", second: "#b4530a", grey: "#9aa4b0"};

  function wrapped(pen, text, width) {
    const lines = [""];
    for (const word of text.split(" ")) {
      const tried = lines[lines.length - 1] ? `${lines[lines.length - 1]} ${word}` : word;
      if (pen.measureText(tried).width <= width || !lines[lines.length - 1]) {
        lines[lines.length - 1] = tried;
      } else lines.push(word);
    }
    return lines;
  }

  // The canvas of a view, with its sentence above and its source below.
  function picture(view, source) {
    const canvas = document.createElement("canvas");
    canvas.width = WIDTH;
    let pen = canvas.getContext("2d");
    const font = (size, weight = 400) => { pen.font = `${weight} ${size}px ${FONT}`; };
    font(30, 650);
    const title = wrapped(pen, view.text, WIDTH - 2 * EDGE);
    font(17);
    const foot = wrapped(pen, source, WIDTH - 2 * EDGE);
    const cross = view.kind === "cross" ? view.cross : null;
    const rows = cross ? cross.rows.slice(0, MOST_ROWS) : view.chart.rows.slice(0, MOST_ROWS);
    const top = EDGE + title.length * 40 + 50;
    canvas.height = top + (rows.length + (cross ? 1 : 0)) * LINE + 40 + foot.length * 25 + EDGE / 2;
    pen = canvas.getContext("2d");
    pen.fillStyle = colour.page;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.textBaseline = "middle";
    const write = (text, x, y, style = colour.text, align = "left", most = undefined) => {
      pen.fillStyle = style;
      pen.textAlign = align;
      pen.fillText(text, x, y, most);
    };
    font(30, 650);
    title.forEach((line, i) => write(line, EDGE, EDGE + 16 + i * 40));
    font(19);
    write(view.title, EDGE, top - 26, colour.muted, "left", WIDTH - 2 * EDGE);
    font(18);
    if (cross) drawCross(pen, write, view, cross, rows, top);
    else drawRows(pen, write, view, rows, top);
    font(17);
    foot.forEach((line, i) => write(line, EDGE, canvas.height - EDGE / 2 - (foot.length - i) * 25 + 8,
      colour.muted));
    return canvas;
  }

  function drawRows(pen, write, view, rows, top) {
    const format = view.chartFormat, isDots = view.kind === "dots";
    const widest = Math.max(...rows.map(({label}) => pen.measureText(label).width), 40);
    const left = EDGE + Math.min(widest, 420) + 20, right = WIDTH - EDGE - 230;
    const base = isDots ? (view.chart.reference ? view.chart.reference.figure : view.overall) : null;
    const ends = [...rows.map((row) => row.figure), ...(base ? [base] : [])].flatMap((f) =>
      [f.value, f.low ?? f.value, f.high ?? f.value]);
    const [low, high] = [isDots ? Math.min(...ends) : 0, Math.max(...ends, 1e-12)];
    const x = (value) => left + ((right - left) * (value - low)) / (high - low || 1);
    rows.forEach(({label, figure, all, alike}, i) => {
      const y = top + i * LINE + LINE / 2;
      const ink = alike ? colour.grey : colour.text;
      write(label, EDGE, y, ink, "left", 420);
      const mark = base ? base.value : all ? all.value : null;
      if (!isDots) {
        pen.fillStyle = colour.bar;
        pen.fillRect(left, y - 10, Math.max(x(figure.value) - left, 1), 20);
      }
      if (mark !== null) {
        pen.fillStyle = colour.second;
        pen.fillRect(x(mark) - 2, y - LINE / 2 + (isDots ? 0 : 4), 3, isDots ? LINE : LINE - 8);
      }
      if (figure.low !== null) {
        pen.fillStyle = isDots && alike ? colour.grey : colour.mark;
        pen.fillRect(x(figure.low), y - 1.5, Math.max(x(figure.high) - x(figure.low), 2), 3);
      }
      if (isDots) {
        pen.fillStyle = alike ? colour.grey : colour.bar;
        pen.beginPath();
        pen.arc(x(figure.value), y, 8, 0, 2 * Math.PI);
        pen.fill();
      }
      write(format.value(figure), WIDTH - EDGE - 110, y, ink, "right");
      write(format.half(figure), WIDTH - EDGE, y, colour.muted, "right", 105);
    });
  }

  function drawCross(pen, write, view, {heads}, rows, top) {
    const shown = heads.slice(0, MOST_COLUMNS), left = EDGE + 230;
    const each = (WIDTH - EDGE - left) / shown.length;
    const strongest = Math.max(1e-12, ...rows.flatMap((row) => row.cells.map((f) => (f ? f.value : 0))));
    shown.forEach((label, j) =>
      write(label, left + (j + 1) * each - 10, top + LINE / 2, colour.muted, "right", each - 14));
    rows.forEach((row, i) => {
      const y = top + (i + 1) * LINE;
      write(row.label, EDGE, y + LINE / 2, colour.text, "left", 220);
      row.cells.slice(0, MOST_COLUMNS).forEach((figure, j) => {
        if (!figure) return;
        pen.fillStyle = `rgb(74 138 224 / ${0.5 * figure.value / strongest})`;
        pen.fillRect(left + j * each + 1, y + 1, each - 2, LINE - 2);
        write(`${view.format.value(figure)} ${view.format.half(figure)}`, left + (j + 1) * each - 10,
          y + LINE / 2, colour.text, "right", each - 14);
      });
    });
  }

  return {picture};
})());
