// The POIM explorer. All importances of words up to d letters are in tables (site/export.py);
// those of longer motifs are put together from windows of d letters.
(() => {
  const LETTERS = "ACGT", SHOWN = 10, MAX = 20;
  const $ = (id) => document.getElementById(id);

  class Machine {
    constructor({ name, motif, length, degree, tables, weights }) {
      Object.assign(this, { name, motif, length, degree });
      this.packed = { tables, weights };
      this.unpacked = { tables: [], weights: [] };
    }

    // Importances, or weights, of all words of k letters: word w at position j is at j * 4^k + w.
    table(k, kind = "tables") {
      const tables = this.unpacked[kind];
      if (!tables[k]) {
        const { factor, data } = this.packed[kind][k - 1];
        const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
        tables[k] = Float64Array.from(new Int16Array(bytes.buffer), (v) => v * factor);
      }
      return tables[k];
    }

    // The weight w of z at all positions; of more than d letters, the largest of its words of d.
    weights(z) {
      const k = z.length, d = Math.min(k, this.degree), size = 4 ** d, W = this.table(d, "weights");
      return Float64Array.from({ length: this.length - k + 1 }, (_, j) =>
        Math.max(...Array.from({ length: k - d + 1 }, (_, i) => W[(j + i) * size + code(z.slice(i, i + d))])));
    }

    // What a word of d letters adds to a motif that came up to its last letter.
    gains() {
      if (!this.gain) {
        const d = this.degree, words = 4 ** d, T = this.table(d), less = this.table(d - 1);
        this.gain = T.map((v, i) => v - less[Math.floor(i / words) * (words / 4) + ((i % words) >> 2)]);
      }
      return this.gain;
    }

    // Q'(z, j) at all positions j; z is an array of codes.
    along(z) {
      const k = z.length, d = Math.min(k, this.degree), size = 4 ** d, T = this.table(d);
      const gain = this.gains(), words = [];
      for (let i = 0; i + d <= k; i++) words.push(code(z.slice(i, i + d)));
      const values = new Float64Array(this.length - k + 1);
      for (let j = 0; j < values.length; j++) {
        let value = T[j * size + words[0]];
        for (let i = 1; i < words.length; i++) value += gain[(j + i) * size + words[i]];
        values[j] = value;
      }
      return values;
    }

    // The n motifs of k letters with the largest Q' at j. What is still to come depends on the
    // last d - 1 letters only, so that keeping the n best for each of these is exact.
    best(k, j, n) {
      const d = Math.min(k, this.degree), size = 4 ** d, T = this.table(d), gains = this.gains();
      let found = Array.from({ length: size }, (_, w) => [[T[j * size + w], letters(w, d)]]);
      if (k > d) found = merge(found, size / 4, n);
      for (let i = 1; i + d <= k; i++) {
        const next = Array.from({ length: size }, (_, w) => {
          const gain = gains[(j + i) * size + w];
          return found[w >> 2].map(([value, text]) => [value + gain, text + LETTERS[w & 3]]);
        });
        found = merge(next, size / 4, n);
      }
      return found.flat().sort((a, b) => b[0] - a[0]).slice(0, n);
    }

    // The largest Q' of any motif of k letters at each position, in the same way.
    largest(k) {
      const d = Math.min(k, this.degree), size = 4 ** d, T = this.table(d), gain = this.gains();
      const states = new Float64Array(size / 4), mask = size / 4 - 1;
      return Float64Array.from({ length: this.length - k + 1 }, (_, j) => {
        const value = T.slice(j * size, (j + 1) * size);
        for (let i = 1; i + d <= k; i++) {
          states.fill(-Infinity);
          for (let w = 0; w < size; w++) {
            if (value[w] > states[w & mask]) states[w & mask] = value[w];
          }
          for (let w = 0; w < size; w++) value[w] = states[w >> 2] + gain[(j + i) * size + w];
        }
        return value.reduce((a, b) => Math.max(a, b));
      });
    }

    // Mean and standard deviation of the motifs that differ from z in every letter: all of them
    // up to 7 letters, else 729 random ones, always the same.
    nullBand(z) {
      const k = z.length, n = k > 7 ? 729 : 3 ** k, positions = this.length - k + 1;
      const sum = new Float64Array(positions), squares = new Float64Array(positions);
      let state = 1;
      for (let m = 0, rest = 0; m < n; m++) {
        rest = m;
        const other = z.map((letter) => {
          let step = rest % 3;
          rest = Math.floor(rest / 3);
          if (k > 7) step = (state = (state * 48271) % 2147483647) % 3;
          return (letter + 1 + step) % 4;
        });
        this.along(other).forEach((v, j) => { sum[j] += v; squares[j] += v * v; });
      }
      const mean = sum.map((v) => v / n);
      const sd = squares.map((v, j) => Math.sqrt(Math.max(0, v / n - mean[j] ** 2)));
      return { mean, sd };
    }
  }

  const code = (z) => z.reduce((word, letter) => 4 * word + letter, 0);
  const letters = (word, d) =>
    Array.from({ length: d }, (_, i) => LETTERS[(word >> (2 * (d - 1 - i))) & 3]).join("");
  const merge = (found, states, n) =>
    Array.from({ length: states }, (_, state) => {
      const all = [];
      for (let w = state; w < found.length; w += states) all.push(...found[w]);
      return all.sort((a, b) => b[0] - a[0]).slice(0, n);
    });
  const argmax = (values) => values.reduce((best, v, i) => (v > values[best] ? i : best), 0);
  const scale = (k) => Math.sqrt(1 / (4 ** k - 1)); // Q = Q' sqrt(p / (1 - p)), p = 4^-k
  const number = (v) => v.toPrecision(3).replace("-", "−");

  const machines = window.FIRM_MACHINES.map((machine) => new Machine(machine));
  let view; // what is drawn: machine, motif, its curves
  let at = 0;

  // What cannot be shown takes what was shown before with it.
  function fail(reason) {
    view = undefined;
    $("message").textContent = reason;
    $("values").textContent = $("best-at").textContent = "";
    $("plot").replaceChildren();
    $("best").tBodies[0].replaceChildren();
  }

  const codes = (motif) => [...motif].map((letter) => LETTERS.indexOf(letter));

  function show(typed, position) {
    const machine = machines[$("machine").value], motif = typed.toUpperCase().replace(/\s/g, "").replaceAll("U", "T");
    const z = codes(motif), k = z.length;
    if (!k || k > MAX || z.includes(-1)) {
      const wrong = [...new Set([...motif].filter((letter) => !LETTERS.includes(letter)))].join(" ");
      const found = wrong ? `, not ${wrong}` : k > MAX ? `; this one has ${k}` : "";
      return fail(`A motif has 1 to ${MAX} letters, each of A, C, G, T${found}.`);
    }
    const factor = scale(k), scaled = (values) => values.map((v) => v * factor);
    const { mean, sd } = machine.nullBand(z);
    view = {
      machine, motif, k,
      line: scaled(machine.along(z)),
      top: scaled(machine.largest(k)),
      mean: scaled(mean), sd: scaled(sd),
      w: machine.weights(z),
    };
    const peak = argmax(view.line);
    const signal = sd[peak] ? (view.line[peak] - view.mean[peak]) / view.sd[peak] : 0;
    $("message").textContent =
      `${motif} is most important at position ${peak}: Q = ${number(view.line[peak])}, ` +
      `${number(signal)} sd from the null. Its w is largest at position ${argmax(view.w)}.` +
      (/\s/.test(typed) ? " Spaces are left out." : "") + (/u/i.test(typed) ? " U is read as T." : "") +
      (k > machine.degree ? ` The kernel has no weight for ${k} letters: w is the largest of its words of ${machine.degree}.` : "");
    $("length").value = k;
    choose(position ?? peak);
  }

  function choose(position) {
    const last = view.line.length - 1;
    at = Math.max(0, Math.min(last, position));
    if (at !== position) $("message").textContent = `Positions of ${view.k} letters are 0 to ${last}.`;
    $("position").value = at;
    $("position").max = last;
    $("best-at").textContent = at;
    const rows = view.machine.best(view.k, at, SHOWN);
    $("best").tBodies[0].replaceChildren(
      ...rows.map(([value, text]) => {
        const row = document.createElement("tr"), button = document.createElement("button");
        button.textContent = text;
        button.className = text === view.motif ? "chosen" : "";
        button.addEventListener("click", () => {
          $("motif").value = text;
          show(text, at);
        });
        row.insertCell().append(button);
        row.insertCell().textContent = number(value * scale(view.k));
        const bar = document.createElement("div");
        bar.className = "bar";
        bar.style.width = `${Math.max(0, (100 * value) / rows[0][0])}%`;
        row.insertCell().append(bar);
        row.insertCell().textContent = number(view.machine.weights(codes(text))[at]);
        return row;
      }),
    );
    const state = { machine: $("machine").value, motif: view.motif, position: at };
    history.replaceState(null, "", `#${new URLSearchParams(state)}`);
    values(at);
    draw();
  }

  // In words, what the pictures have at position j.
  function values(j) {
    const { line, top, mean, sd, w } = view;
    $("values").textContent =
      `At ${j}: Q = ${number(line[j])}, w = ${number(w[j])}; best of its length Q = ${number(top[j])}; ` +
      `null ${number(mean[j])} ± ${number(sd[j])}.`;
  }

  const LEFT = 56, RIGHT = 10;

  // One picture: axes, and the function that gives the height of a value.
  function panel(above, height, width, series, x, name) {
    const all = series.flatMap((values) => [...values]);
    const low = Math.min(0, ...all), high = Math.max(...all, 0) || 1;
    const y = (v) => above + (height * (high - v)) / (high - low);
    const step = 10 ** Math.floor(Math.log10((high - low) / 3));
    const tick = [1, 2, 5].map((m) => m * step).find((s) => (high - low) / s <= height / 40) ?? 10 * step;
    const digits = Math.max(0, -Math.floor(Math.log10(tick)));
    let axes = `<text x="4" y="${above + 8}">${name}</text>`;
    for (let v = Math.ceil(low / tick) * tick; v <= high; v += tick) {
      axes += `<path class="grid" d="M${LEFT} ${y(v)}H${width - RIGHT}"/>` +
        `<text x="${LEFT - 6}" y="${y(v) + 4}" text-anchor="end">${(v + 0).toFixed(digits).replace("-", "−")}</text>`;
    }
    const points = (values) => [...values].map((v, j) => `${x(j).toFixed(1)},${y(v).toFixed(1)}`);
    const line = (kind, values) => `<polyline class="${kind}" points="${points(values).join(" ")}"/>`;
    const dot = (kind, values) => `<circle class="${kind}-at" cx="${x(at)}" cy="${y(values[at])}" r="4"/>`;
    return { axes, points, line, dot };
  }

  function draw() {
    if (!view) return;
    const { line, top, mean, sd, w, motif, k, machine } = view;
    const width = Math.max(300, $("plot").clientWidth), height = 400, below = 40;
    const x = (j) => LEFT + ((width - LEFT - RIGHT) * j) / Math.max(1, line.length - 1);
    const upper = mean.map((m, j) => m + sd[j]), lower = mean.map((m, j) => m - sd[j]);
    const Q = panel(26, 190, width, [line, top, upper, lower], x, "Q");
    const W = panel(252, 100, width, [w], x, "w");
    const band = [...Q.points(upper), ...Q.points(lower).reverse()];
    const which = k > machine.degree ? `w, largest of its words of ${machine.degree}` : `w of ${motif}`;
    const places = [];
    for (let j = 0; j < line.length; j += line.length > 40 ? 10 : 5) places.push(j);
    $("plot").innerHTML =
      `<svg viewBox="0 0 ${width} ${height}" height="${height}" role="img" ` +
      `aria-label="Importance and weight of ${motif} along the sequence">` + Q.axes + W.axes +
      places.map((j) => `<text x="${x(j)}" y="${height - below + 14}" text-anchor="middle">${j}</text>`).join("") +
      `<text x="${(LEFT + width) / 2}" y="${height - 6}" text-anchor="middle">position of the first letter</text>` +
      `<text x="${LEFT}" y="14"><tspan class="key-motif">— ${motif}</tspan>  ` +
      `<tspan class="key-top">··· best of its length</tspan>  <tspan class="key-band">▬ null ± sd</tspan></text>` +
      `<text x="${LEFT}" y="242" class="key-weight">— ${which}</text>` +
      `<polygon class="band" points="${band.join(" ")}"/>` + Q.line("top", top) + Q.line("motif", line) +
      W.line("weight", w) + `<path class="at" d="M${x(at)} 26V${height - below}"/>` +
      Q.dot("motif", line) + W.dot("weight", w) + `</svg>`;
    const under = (event) => {
      const inside = event.clientX - $("plot").firstChild.getBoundingClientRect().left;
      const j = Math.round(((inside - LEFT) / (width - LEFT - RIGHT)) * (line.length - 1));
      return Math.max(0, Math.min(line.length - 1, j));
    };
    $("plot").onclick = (event) => view && choose(under(event));
    $("plot").onpointermove = (event) => view && values(under(event));
    $("plot").onpointerleave = () => view && values(at);
  }

  // What the address says, or the first machine and its motif.
  function start() {
    const state = new URLSearchParams(location.hash.slice(1));
    const machine = machines[state.get("machine")] ? state.get("machine") : 0;
    const position = parseInt(state.get("position"), 10);
    $("machine").value = machine;
    $("motif").value = state.get("motif") ?? machines[machine].motif;
    show($("motif").value, Number.isNaN(position) ? undefined : position);
  }

  machines.forEach((machine, i) => $("machine").add(new Option(machine.name, i)));
  $("machine").addEventListener("input", () => {
    $("motif").value = machines[$("machine").value].motif;
    show($("motif").value);
  });
  $("motif").addEventListener("input", () => {
    $("motif").value = $("motif").value.toUpperCase();
    show($("motif").value);
  });
  $("length").addEventListener("input", () => {
    const k = $("length").valueAsNumber, machine = machines[$("machine").value];
    if (!(Number.isInteger(k) && k >= 1 && k <= MAX)) return fail(`A length is a whole number from 1 to ${MAX}.`);
    $("motif").value = machine.best(k, argmax(machine.largest(k)), 1)[0][1];
    show($("motif").value);
  });
  $("position").addEventListener("input", () => {
    if (view && $("position").value) choose(Math.round($("position").valueAsNumber));
  });
  window.addEventListener("resize", draw);
  window.addEventListener("hashchange", start);
  start();
})();
