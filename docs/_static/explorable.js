/* The explorable figure of "How ROAD works": a recorded run (recorded-run.js) to play, drag and step through. */
(() => {
  const run = window.RECORDED_RUN;
  const host = document.getElementById("explorable");
  const bytes = (text) => Int8Array.from(atob(text), (character) => character.charCodeAt(0));
  const pixels = run.side ** 2, names = [...run.letters], last = run.iterations.length - 1;
  const atoms = bytes(run.atoms), codes = bytes(run.codes), data = bytes(run.data);
  const atomOf = (frame, k) => atoms.subarray((frame * names.length + k) * pixels, (frame * names.length + k + 1) * pixels);
  const codeOf = (frame, sample, k) => codes[(frame * run.samples + sample) * names.length + k] / 127;
  const node = (tag, attributes = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };

  /* Orange is positive, blue negative, and zero transparent: it suits any background. */
  const WARM = [224, 108, 16], COOL = [58, 124, 190];
  function paint(canvas, values, columns, largest = 127) {
    const context = canvas.getContext("2d"), image = context.createImageData(columns, values.length / columns);
    values.forEach((value, i) => image.data.set([...(value > 0 ? WARM : COOL), Math.min(255, (255 * Math.abs(value)) / largest)], 4 * i));
    context.putImageData(image, 0, 0);
  }
  const picture = (columns, rows, label) => node("canvas", { width: columns, height: rows, role: "img", "aria-label": label });

  const play = node("button", { type: "button", class: "play" });
  const slider = node("input", { type: "range", min: 0, max: last, step: 1, "aria-label": "iteration" });
  const count = node("output", { class: "count" });
  const stage = node("p", { class: "stage", "aria-live": "polite" });
  const tiles = names.map((name) => {
    const canvas = picture(run.side, run.side, `atom ${name}`), score = node("small");
    return { canvas, score, box: node("div", { class: "tile" }, canvas, score) };
  });
  const samples = Array.from({ length: 12 }, (_, i) => {
    const canvas = picture(run.side, run.side, `sample ${i + 1}`);
    paint(canvas, data.subarray(i * pixels, (i + 1) * pixels), run.side);
    const button = node("button", { type: "button", class: "sample" }, canvas);
    button.addEventListener("click", () => { chosen = i; show(); });
    return button;
  });
  const sum = node("div", { class: "sum" });
  const table = picture(run.samples, names.length, "codes: a column for each sample, a row for each atom");
  table.classList.add("codes");
  const curves = node("div", { class: "curves" });
  const panel = (title, ...inside) => node("section", {}, node("h4", {}, title), ...inside);
  host.replaceChildren(
    node("div", { class: "controls" }, play, slider, count), stage,
    panel("The sixteen atoms", node("div", { class: "tiles" }, ...tiles.map((tile) => tile.box))),
    panel("A sample as a sum: choose one", node("div", { class: "samples" }, ...samples), sum),
    panel(`Codes of ${run.samples} samples: a column each, a row per atom`, table), panel("The course of the run", curves));

  const charts = [["ρ", ["rho"]], ["residuals", ["primal", "dual"]]].map(([title, keys]) => {
    const total = run.curves.rho.length, every = keys.flatMap((key) => run.curves[key]).filter((value) => value > 0);
    const low = Math.log10(Math.min(...every)), high = Math.log10(Math.max(...every));
    const at = (i, value) => `${(40 + (256 * i) / (total - 1)).toFixed(1)} ${(96 - (84 * (Math.log10(value) - low)) / (high - low)).toFixed(1)}`;
    const paths = keys.map((key) => `<path class="${key}" d="M${run.curves[key].map((value, i) => at(i, Math.max(value, 10 ** low))).join("L")}"/>`);
    const number = (power) => (power >= -1 && power < 4 ? String(+(10 ** power).toPrecision(2)) : (10 ** power).toExponential(0));
    const ends = `<text x="36" y="17" text-anchor="end">${number(high)}</text><text x="36" y="99" text-anchor="end">${number(low)}</text>`;
    const axis = `<text x="40" y="114">1</text><text x="296" y="114" text-anchor="end">iteration ${total}</text>`;
    const legend = keys.map((key, i) => (keys.length > 1 ? `<text class="${key}" x="296" y="${20 + 14 * i}" text-anchor="end">${key}</text>` : "")).join("");
    const cursor = '<line class="cursor" y1="8" y2="98"/>';
    const chart = node("figure", {});
    chart.innerHTML = `<figcaption>${title} (log scale)</figcaption><svg viewBox="0 0 304 120" role="img" aria-label="${title} over iterations">${paths.join("")}${ends}${axis}${legend}${cursor}</svg>`;
    curves.append(chart);
    return (iteration) => {
      const line = chart.querySelector(".cursor"), x = 40 + (256 * (Math.min(iteration, total) - 1)) / (total - 1);
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
    };
  });

  function told(frame, found) {
    const share = `${found} of ${names.length}`;
    if (frame === last) return `The exact finish: least squares and basis pursuit take the atoms to rounding. ${share} are found, and every sample uses two.`;
    if (frame === 0) return `The start: ${share} atoms are letters.`;
    if (found < names.length) return `ρ falls: the two copies of each block may disagree, atoms move and snap into place. ${share} are found.`;
    return "All atoms are found. The residuals fall, and the small codes vanish.";
  }

  let chosen = 0, frame = 0, timer = 0;
  function showSum() {
    samples.forEach((button, i) => button.setAttribute("aria-pressed", i === chosen));
    const terms = names.map((name, k) => ({ name, k, code: codeOf(frame, chosen, k) * run.unit })).sort((a, b) => Math.abs(b.code) - Math.abs(a.code));
    const used = terms.filter((term) => Math.abs(term.code) >= 0.5 * run.unit / 127), shown = used.slice(0, 4);
    sum.replaceChildren(samples[chosen].firstChild.cloneNode(), node("span", {}, "="));
    paint(sum.firstChild, data.subarray(chosen * pixels, (chosen + 1) * pixels), run.side);
    shown.forEach((term, i) => {
      const canvas = picture(run.side, run.side, `atom ${term.name}`);
      paint(canvas, atomOf(frame, term.k), run.side);
      const sign = term.code < 0 ? "−" : i ? "+" : "";
      sum.append(node("span", { class: "term" }, `${sign} ${Math.abs(term.code).toFixed(2)} ×`, canvas));
    });
    if (used.length > shown.length) sum.append(node("span", { class: "rest" }, `+ ${used.length - shown.length} more`));
  }
  function show() {
    const scores = run.correlations[frame], found = scores.filter((score) => score > run.found).length;
    tiles.forEach(({ canvas, score, box }, k) => {
      paint(canvas, atomOf(frame, k), run.side);
      score.textContent = scores[k].toFixed(2);
      box.classList.toggle("found", scores[k] > run.found);
    });
    paint(table, Array.from({ length: names.length * run.samples }, (_, i) => codeOf(frame, i % run.samples, Math.floor(i / run.samples))), run.samples, 0.5);
    showSum();
    const iteration = run.iterations[frame];
    slider.value = frame;
    slider.setAttribute("aria-valuetext", `iteration ${iteration}, ${found} of ${names.length} atoms found`);
    count.textContent = `iteration ${iteration} of ${run.iterations[last]} · ${found} of ${names.length} found`;
    stage.textContent = told(frame, found);
    charts.forEach((move) => move(iteration));
    play.textContent = timer ? "❚❚ Pause" : frame === last ? "↺ Again" : "▶ Play";
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
  }
  play.addEventListener("click", () => {
    if (timer) stop();
    else {
      frame = frame === last ? 0 : frame;
      timer = setInterval(() => { if (++frame >= last) { frame = last; stop(); } show(); }, 110);
    }
    show();
  });
  slider.addEventListener("input", () => { stop(); frame = Number(slider.value); show(); });
  show();
})();
