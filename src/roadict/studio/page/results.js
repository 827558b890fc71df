// Runs for every component with results, when it is created; `element` is the component, `watch` tells of new HTML.
const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
const make = (tag, values = {}, ...inside) => {
  const made = Object.assign(document.createElement(tag), values);
  made.append(...inside);
  return made;
};
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Tooltips of charts: by pointer, touch, or arrow keys on a focused chart. They survive a chart that is drawn anew.
if (!document.getElementById("rd-tip")) {
  const tip = document.body.appendChild(make("div", { id: "rd-tip", role: "status" }));
  let pointer = null;
  const hide = () => tip.classList.remove("shown");
  const show = column => {
    document.querySelectorAll(".column.at").forEach(other => other.classList.remove("at"));
    if (!column) return hide();
    column.classList.add("at");
    const values = JSON.parse(column.dataset.tip);
    const rows = values.lines.map(line => make("div", {}, make("i", { className: "c" + line.colour }), line.label + " ", make("b", { textContent: line.mean })));
    tip.replaceChildren(make("strong", { textContent: values.at }), ...rows);
    const box = column.getBoundingClientRect(), room = innerWidth - tip.offsetWidth - 8;
    tip.style.left = clamp(box.right + 10 > room ? box.left - tip.offsetWidth - 10 : box.right + 10, 8, room) + "px";
    tip.style.top = clamp(box.top, 8, innerHeight - tip.offsetHeight - 8) + "px";
    tip.classList.add("shown");
  };
  const under = () => pointer && document.elementFromPoint(pointer.x, pointer.y)?.closest(".rd-panel .column");
  ["pointermove", "pointerdown"].forEach(kind => addEventListener(kind, event => {
    pointer = { x: event.clientX, y: event.clientY };
    show(under());
  }));
  addEventListener("scroll", () => { pointer = null; show(null); }, { passive: true, capture: true });
  document.addEventListener("rd-redrawn", () => { if (pointer) show(under()); });
  addEventListener("keydown", event => {
    const plot = event.target.closest?.(".rd-panel .plot"), step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!plot || !step) return;
    const columns = [...plot.querySelectorAll(".column")], at = columns.findIndex(column => column.classList.contains("at"));
    show(columns[clamp(at < 0 ? columns.length - 1 : at + step, 0, columns.length - 1)]);
    event.preventDefault();
  });
  addEventListener("focusout", event => { if (event.target.closest?.(".plot")) show(null); });
  // Where the panel is below the inputs, as on a phone, follow it from the start of a job to its result, unless the user scrolls.
  let followed = null;
  const follow = () => {
    if (!followed) return;
    followed.scrollIntoView({ block: "start" });
    if (!followed.querySelector(".rd-idle, .rd-running, .rd-waiting")) followed = null;
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("#pictures-run, #signals-run"), panel = button && document.getElementById(button.id.replace("run", "panel"));
    if (panel && panel.getBoundingClientRect().top >= button.getBoundingClientRect().bottom) followed = panel;
  });
  ["wheel", "touchmove", "keydown"].forEach(kind => addEventListener(kind, () => { followed = null; }, { passive: true }));
  document.addEventListener("rd-redrawn", () => setTimeout(follow, 300));
}

// Values of an atom or a signal as pixels (square ones) or as a curve; a byte of -128 is a missing value.
const drawn = (packed, side, more = null) => {
  const values = new Int8Array(bytes(packed).buffer);
  if (side) {
    const canvas = make("canvas", { width: side, height: side }), context = canvas.getContext("2d"), image = context.createImageData(side, side);
    values.forEach((value, i) => image.data.set(value === -128 ? [0, 0, 0, 0] : [...Array(3).fill(Math.round(127.5 + value * 127.5 / 127)), 255], 4 * i));
    context.putImageData(image, 0, 0);
    return canvas;
  }
  const path = (list, kind) => {
    let text = "", pen = "M";
    list.forEach((value, i) => {
      const gap = value === -128;
      if (!gap) text += `${pen}${(100 * i / Math.max(list.length - 1, 1)).toFixed(1)} ${(30 - 28 * value / 127).toFixed(1)}`;
      pen = gap ? "M" : "L";
    });
    return `<path class="line ${kind}" d="${text}"/>`;
  };
  const box = make("div", { className: "rd-curve" });
  const part = more ? path(Array.from(new Int8Array(bytes(more.values).buffer), value => value * more.gain), "c0") : "";
  box.innerHTML = `<svg class="plot" viewBox="0 0 100 60" preserveAspectRatio="none" aria-hidden="true"><path class="line zero" d="M0 30h100"/>${path(Array.from(values), more ? "quiet" : "c0")}${part}</svg>`;
  return box;
};

const heat = (atom, grid, photo) => {
  const share = Math.min(1, 400 / Math.max(grid.width, grid.height)), width = Math.round(share * grid.width), height = Math.round(share * grid.height);
  const canvas = make("canvas", { width, height, className: "rd-heat" }), context = canvas.getContext("2d"), sum = new Float32Array(width * height);
  const at = new Uint16Array(bytes(atom.at).buffer), strength = bytes(atom.strength), cell = grid.cell;
  at.forEach((place, i) => {
    const left = place % grid.columns * grid.step, top = Math.floor(place / grid.columns) * grid.step;
    for (let y = Math.floor(share * top); y < Math.min(height, Math.ceil(share * (top + cell))); y++)
      for (let x = Math.floor(share * left); x < Math.min(width, Math.ceil(share * (left + cell))); x++) sum[y * width + x] += strength[i];
  });
  const most = sum.reduce((a, b) => Math.max(a, b), 1);
  context.filter = "grayscale(1)";
  context.drawImage(photo, 0, 0, width, height);
  const image = context.getImageData(0, 0, width, height);
  sum.forEach((value, i) => {
    const cover = 0.85 * Math.sqrt(value / most);
    [240, 90, 20].forEach((colour, c) => { image.data[4 * i + c] += cover * (colour - image.data[4 * i + c]); });
  });
  context.putImageData(image, 0, 0);
  canvas.dataset.covered = (sum.filter(value => value > 0).length / sum.length).toFixed(4);
  return canvas;
};

const explore = section => {
  const uses = JSON.parse(section.querySelector(".rd-uses").textContent), grid = section.querySelector(".rd-grid"), large = section.querySelector(".rd-atom");
  const photo = section.dataset.photo ? make("img", { src: section.dataset.photo }) : null;
  const buttons = uses.atoms.map(atom => {
    const button = make("button", { type: "button", tabIndex: -1, title: `Atom ${atom.name}, ${atom.text}` }, drawn(atom.values, uses.side));
    button.setAttribute("aria-label", button.title);
    button.classList.toggle("rd-doubted", Boolean(atom.doubted));
    return button;
  });
  grid.replaceChildren(...buttons);
  grid.style.setProperty("--cell", `${clamp(Math.round(360 / Math.sqrt(buttons.length)), 34, 72)}px`);
  const choose = async index => {
    buttons.forEach((button, i) => { button.setAttribute("aria-pressed", i === index); button.tabIndex = i === index ? 0 : -1; });
    const atom = uses.atoms[index];
    const parts = [make("div", { className: "rd-large" }, drawn(atom.values, uses.side)), make("p", {}, make("b", { textContent: `Atom ${atom.name}` }), ` ${atom.text}`)];
    if (photo) {
      await photo.decode();
      parts.push(make("figure", {}, heat(atom, uses.grid, photo), make("figcaption", { textContent: "Where the picture uses it: the stronger the colour, the larger its coefficients." })));
    } else if (atom.users.length) {
      const users = atom.users.map(([row, coefficient, gain]) => make("figure", {}, drawn(uses.signals[row], uses.side, { values: atom.values, gain }), make("figcaption", { textContent: `signal ${row}: ${coefficient}` })));
      const note = uses.side ? "Signals with the largest coefficients." : "Signals with the largest coefficients, grey, and the part of the atom in them.";
      parts.push(make("p", { textContent: note }), make("div", { className: "rd-users" }, ...users));
    }
    large.replaceChildren(...parts);
  };
  grid.addEventListener("click", event => {
    const index = buttons.indexOf(event.target.closest("button"));
    if (index >= 0) choose(index);
  });
  grid.addEventListener("keydown", event => {
    const at = buttons.indexOf(document.activeElement), columns = buttons.filter(button => button.offsetTop === buttons[0].offsetTop).length;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -at, End: buttons.length - 1 - at }[event.key];
    if (at < 0 || step === undefined) return;
    event.preventDefault();
    const next = clamp(at + step, 0, buttons.length - 1);
    choose(next);
    buttons[next].focus();
  });
  choose(0);
};

// A picture of the slider, as soon as it has those of this run; null if another run is shown before.
const picture = async (section, name) => {
  const slider = section.dataset.slider;
  for (let tries = 0; tries < 300; tries++) {
    if (!section.isConnected) return null;
    const found = [...document.querySelectorAll(slider + " img")].find(image => new RegExp(`[/\\\\]${name}\\.png`).test(decodeURIComponent(image.src)));
    if (found) {
      const image = make("img", { src: found.src });
      await image.decode();
      return image;
    }
    await new Promise(wait => setTimeout(wait, 100));
  }
  throw new Error(`the slider has no picture ${name}`);
};

// Both pictures subtracted, where they are shown; of an inpainting the pixels that were filled, those of the marked colour.
const subtract = ([old, now], task, marked) => {
  for (let i = 0; i < now.data.length; i += 4) {
    const filled = marked.every((colour, c) => old.data[i + c] === colour);
    for (let c = i; c < i + 3; c++) now.data[c] = task === "inpaint" ? (filled ? now.data[c] : 128) : 128 + 4 * (now.data[c] - old.data[c]);
  }
  return now;
};

// The whole picture, small, with a frame around the part that is magnified.
const overview = (canvas, image, x, y, length) => {
  const context = canvas.getContext("2d"), whole = canvas.clientWidth, wide = image.naturalWidth, high = image.naturalHeight;
  const scale = whole / Math.max(wide, high), framed = Math.min(scale * length, whole - 2);
  Object.assign(canvas, { width: whole, height: whole });
  const left = (whole - scale * wide) / 2, top = (whole - scale * high) / 2;
  context.drawImage(image, left, top, scale * wide, scale * high);
  context.lineWidth = 2;
  [["#000", 1], ["#fff", 0]].forEach(([colour, out]) => {
    context.strokeStyle = colour;
    context.strokeRect(left + scale * x - out, top + scale * y - out, framed + 2 * out, framed + 2 * out);
  });
};

const magnify = async section => {
  const { run, task, truth, mark = "" } = section.dataset, views = {}, marked = [1, 3, 5].map(i => parseInt(mark.slice(i, i + 2), 16));
  section.querySelectorAll("canvas").forEach(canvas => { views[canvas.dataset.view] = canvas; });
  const [before, after] = await Promise.all([picture(section, `before-${run}`), picture(section, `after-${run}`)]);
  if (!before || !after) return;
  const shown = { before, after };
  if (truth) { shown.truth = make("img", { src: truth }); await shown.truth.decode(); }
  const wide = after.naturalWidth, high = after.naturalHeight, at = { x: section.dataset.x * wide, y: section.dataset.y * high };
  const side = () => views.after.clientWidth, longer = Math.max(wide, high);
  let zoom = [1, 2, 4].find(times => longer * times >= 2 * side()) || 8;
  const region = () => {
    const size = side() / zoom;
    at.x = size >= wide ? wide / 2 : clamp(at.x, size / 2, wide - size / 2);
    at.y = size >= high ? high / 2 : clamp(at.y, size / 2, high - size / 2);
    return [Math.round(at.x - size / 2), Math.round(at.y - size / 2), size];
  };
  const differ = (context, size) => {
    const pixels = [before, after].map(image => {
      context.clearRect(0, 0, size, size);
      context.drawImage(image, ...region().slice(0, 2), size / zoom, size / zoom, 0, 0, size, size);
      return context.getImageData(0, 0, size, size);
    });
    context.putImageData(subtract(pixels, task, marked), 0, 0);
  };
  const draw = () => {
    if (!side()) return;  // no longer on the page
    const [x, y, length] = region(), size = side();
    Object.entries(views).forEach(([name, canvas]) => {
      if (name === "map") return overview(canvas, after, x, y, length);
      const context = canvas.getContext("2d", { willReadFrequently: name === "difference" });
      Object.assign(canvas, { width: size, height: size });
      context.imageSmoothingEnabled = false;
      if (name === "difference") differ(context, size);
      else context.drawImage(shown[name], x, y, length, length, 0, 0, size, size);
    });
    section.querySelectorAll("[data-zoom]").forEach(button => button.setAttribute("aria-pressed", +button.dataset.zoom === zoom));
    Object.assign(section.dataset, { left: x, top: y, zoom });
  };
  const moveTo = event => {
    const box = views.map.getBoundingClientRect(), scale = longer / box.width;
    at.x = wide / 2 + scale * (event.clientX - box.left - box.width / 2);
    at.y = high / 2 + scale * (event.clientY - box.top - box.height / 2);
  };
  let from = null;
  section.addEventListener("pointerdown", event => {
    if (event.target.tagName !== "CANVAS") return;
    from = { x: event.clientX, y: event.clientY, at: { ...at }, map: event.target === views.map };
    event.target.setPointerCapture(event.pointerId);
    if (from.map) { moveTo(event); draw(); }
  });
  section.addEventListener("pointermove", event => {
    if (!from) return;
    if (from.map) moveTo(event);
    else { at.x = from.at.x - (event.clientX - from.x) / zoom; at.y = from.at.y - (event.clientY - from.y) / zoom; }
    draw();
  });
  ["pointerup", "pointercancel"].forEach(kind => section.addEventListener(kind, () => { from = null; }));
  section.addEventListener("keydown", event => {
    const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] || [];
    if (event.target.tagName !== "CANVAS" || x === undefined) return;
    event.preventDefault();
    at.x += x * 16 / zoom;
    at.y += y * 16 / zoom;
    draw();
  });
  section.addEventListener("click", event => {
    const button = event.target.closest("[data-zoom]");
    if (button) { zoom = +button.dataset.zoom; draw(); }
  });
  new ResizeObserver(draw).observe(views.after);
  draw();
};

const start = () => {
  document.dispatchEvent(new Event("rd-redrawn"));
  element.querySelectorAll(".rd-figures .plot").forEach(plot => plot.setAttribute("tabindex", "0"));
  [[".rd-explorer", explore], [".rd-loupe", magnify]].forEach(([kind, begin]) => {
    element.querySelectorAll(kind + ":not([data-ready])").forEach(old => {
      // Gradio updates the elements of one result to those of the next, and leaves their listeners: start with none.
      const section = old.cloneNode(true);
      section.dataset.ready = "";
      old.replaceWith(section);
      begin(section);
    });
  });
};
watch("value", start);
start();
