"use strict";
const tip = document.getElementById("tip");
const cell = (row, text, mark) => {
  const made = row.insertCell();
  if (mark !== undefined) made.appendChild(document.createElement("i")).className = "c" + mark;
  made.append(text);
};
// Below the chart, above it or beside it, wherever there is room, so that no value is hidden.
const place = column => {
  const box = column.getBoundingClientRect(), chart = column.closest("svg").getBoundingClientRect();
  const width = tip.offsetWidth, height = tip.offsetHeight, across = innerWidth - width - 8, down = innerHeight - height - 8;
  const within = (value, most) => Math.max(8, Math.min(value, most));
  const left = within((box.left + box.right - width) / 2, across), top = within((box.top + box.bottom - height) / 2, down);
  const [x, y] = [[left, chart.bottom + 4], [left, chart.top - height - 4], [chart.right + 8, top], [chart.left - width - 8, top]]
    .find(([x, y]) => x >= 8 && x <= across && y >= 8 && y <= down) || [left, within(chart.bottom + 4, down)];
  tip.style.left = x + "px";
  tip.style.top = y + "px";
};
// A finger leaves what it taps as soon as it is lifted: the values stay until the next tap, or until the page scrolls.
let touched = false;
const byFinger = event => event.pointerType === "touch";
const hide = () => tip.classList.remove("shown");
document.querySelectorAll(".column").forEach(column => {
  column.addEventListener("pointerenter", event => {
    touched = byFinger(event);
    const values = JSON.parse(column.dataset.tip), table = document.createElement("table");
    values.lines.forEach(line => {
      const row = table.insertRow();
      cell(row, line.label, line.colour);
      cell(row, line.mean);
      cell(row, line.range);
      if (line.trials) cell(row, line.trials);
    });
    const foot = Object.assign(document.createElement("div"), { className: "quiet", textContent: values.note });
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: values.at }), table, foot);
    place(column);
    tip.classList.add("shown");
  });
  column.addEventListener("pointerleave", event => { if (!byFinger(event)) hide(); });
});
addEventListener("pointerdown", event => { if (!event.target.closest(".column")) hide(); });
addEventListener("scroll", () => { if (touched) hide(); }, { passive: true });
// Hovering or focusing the name of a curve highlights it in the figures of the section.
document.querySelectorAll(".legend li, .plot .label").forEach(entry => {
  const lines = entry.closest("section").querySelectorAll(".plot [data-name]");
  const only = name => lines.forEach(line => line.classList.toggle("dim", name !== null && line.dataset.name !== name));
  ["pointerenter", "focus"].forEach(kind => entry.addEventListener(kind, () => only(entry.dataset.name)));
  ["pointerleave", "blur"].forEach(kind => entry.addEventListener(kind, event => { if (!byFinger(event)) only(null); }));
  addEventListener("pointerdown", event => { if (!event.target.closest(".legend li, .plot .label")) only(null); });
});
document.querySelectorAll(".compare").forEach(block => {
  const slider = block.querySelector(".slider"), range = slider.querySelector("input"), zoom = block.querySelector(".zoom");
  const figures = [...zoom.querySelectorAll("figure")];
  const sides = [["before", "left"], ["after", "right"]].map(([picture, side]) => {
    const choice = block.querySelector("select." + side), image = slider.querySelector("." + picture);
    const show = () => {
      const from = figures[choice.value].querySelector("img");
      image.src = from.src;
      image.alt = from.alt;
      image.classList.toggle("pixelated", from.naturalWidth < 100);
      slider.querySelector(".tag." + side).textContent = figures[choice.value].querySelector("figcaption").textContent;
    };
    choice.addEventListener("change", show);
    show();
    return [choice, show];
  });
  range.addEventListener("input", () => slider.style.setProperty("--cut", range.value + "%"));
  slider.hidden = false;
  // A drag moves the region of all tiles; a click shows the picture on the right of the slider.
  let from = null;
  zoom.addEventListener("pointerdown", event => {
    const style = getComputedStyle(zoom);
    from = { x: event.clientX, y: event.clientY, at: ["--x", "--y"].map(name => parseFloat(style.getPropertyValue(name))), moved: false };
    event.preventDefault();
  });
  addEventListener("pointermove", event => {
    if (!from) return;
    const tile = figures[0].querySelector(".tile"), hidden = parseFloat(getComputedStyle(block).getPropertyValue("--zoom")) - 1;
    if (hidden <= 0) return;
    [["--x", event.clientX - from.x, tile.offsetWidth, from.at[0]], ["--y", event.clientY - from.y, tile.offsetHeight, from.at[1]]]
      .forEach(([name, moved, size, start]) => zoom.style.setProperty(name, Math.min(1, Math.max(0, start - moved / size / hidden))));
    from.moved = from.moved || Math.hypot(event.clientX - from.x, event.clientY - from.y) > 4;
  });
  addEventListener("pointerup", event => {
    const figure = event.target.closest && event.target.closest("figure");
    if (from && !from.moved && figures.includes(figure)) {
      sides[1][0].value = figures.indexOf(figure);
      sides[1][1]();
    }
    from = null;
  });
  addEventListener("pointercancel", () => { from = null; });
});
