// The POIM explorer. All importances of words up to d letters are in tables (site/export.py);
// those of longer motifs are put together from windows of d letters.
(() => {
  const LETTERS = "ACGT", SHOWN = 10, MAX = 20;
  const $ = (id) => document.getElementById(id);

  class Machine {
    constructor({ name, motif, length, degree, tables }) {
      Object.assign(this, { name, motif, length, degree });
      this.packed = tables;
      this.tables = [];
    }

    // Importances of all words of k letters: word w at position j is at j * 4^k + w.
    table(k) {
      if (!this.tables[k]) {
        const { factor, data } = this.packed[k - 1];
        const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
        this.tables[k] = Float64Array.from(new Int16Array(bytes.buffer), (v) => v * factor);
      }
      return this.tables[k];
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

  function show(motif, position) {
    const machine = machines[$("machine").value];
    const z = [...motif].map((letter) => LETTERS.indexOf(letter));
    if (!z.length || z.length > MAX || z.includes(-1)) {
      $("message").textContent = `A motif has 1 to ${MAX} letters, each of A, C, G, T.`;
      return;
    }
    const k = z.length, factor = scale(k), scaled = (values) => values.map((v) => v * factor);
    const { mean, sd } = machine.nullBand(z);
    view = {
      machine, motif, k,
      line: scaled(machine.along(z)),
      top: scaled(machine.largest(k)),
      mean: scaled(mean), sd: scaled(sd),
    };
    const peak = argmax(view.line);
    const signal = sd[peak] ? (view.line[peak] - view.mean[peak]) / view.sd[peak] : 0;
    $("message").textContent =
      `${motif} is most important at position ${peak}: Q = ${number(view.line[peak])}, ` +
      `${number(signal)} sd from the null.`;
    $("length").value = k;
    choose(position ?? peak);
  }

  function choose(position) {
    at = Math.max(0, Math.min(view.line.length - 1, position));
    $("position").value = at;
    $("position").max = view.line.length - 1;
    $("best-at").textContent = at;
    const rows = view.machine.best(view.k, at, SHOWN);
    const body = $("best").tBodies[0];
    body.replaceChildren(
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
        return row;
      }),
    );
    draw();
  }

  function draw() {
    const { line, top, mean, sd, motif } = view;
    const width = Math.max(300, $("plot").clientWidth), height = 300;
    const left = 52, right = 10, above = 28, below = 40;
    const low = Math.min(0, ...line, ...mean.map((m, j) => m - sd[j]));
    const high = Math.max(...line, ...top, ...mean.map((m, j) => m + sd[j])) || 1;
    const x = (j) => left + ((width - left - right) * j) / Math.max(1, line.length - 1);
    const y = (v) => above + ((height - above - below) * (high - v)) / (high - low);
    const points = (values) => [...values].map((v, j) => `${x(j).toFixed(1)},${y(v).toFixed(1)}`);
    const band = [...points(mean.map((m, j) => m + sd[j])), ...points(mean.map((m, j) => m - sd[j])).reverse()];
    const step = 10 ** Math.floor(Math.log10((high - low) / 3));
    const tick = [1, 2, 5].map((m) => m * step).find((s) => (high - low) / s <= 6) ?? 10 * step;
    const ticks = [];
    for (let v = Math.ceil(low / tick) * tick; v <= high; v += tick) ticks.push(v);
    const places = [];
    for (let j = 0; j < line.length; j += line.length > 40 ? 10 : 5) places.push(j);
    const digits = Math.max(0, -Math.floor(Math.log10(tick)));
    $("plot").innerHTML =
      `<svg viewBox="0 0 ${width} ${height}" height="${height}" role="img" ` +
      `aria-label="Importance of ${motif} along the sequence">` +
      ticks.map((v) => `<path class="grid" d="M${left} ${y(v)}H${width - right}"/>` +
        `<text x="${left - 6}" y="${y(v) + 4}" text-anchor="end">${v.toFixed(digits).replace("-", "−")}</text>`).join("") +
      places.map((j) => `<text x="${x(j)}" y="${height - below + 18}" text-anchor="middle">${j}</text>`).join("") +
      `<text x="${(left + width) / 2}" y="${height - 4}" text-anchor="middle">position of the first letter</text>` +
      `<text x="${left}" y="16"><tspan class="key-motif">— ${motif}</tspan>  ` +
      `<tspan class="key-top">··· best of its length</tspan>  <tspan class="key-band">▬ null ± sd</tspan></text>` +
      `<polygon class="band" points="${band.join(" ")}"/>` +
      `<polyline class="top" points="${points(top).join(" ")}"/>` +
      `<polyline class="motif" points="${points(line).join(" ")}"/>` +
      `<path class="at" d="M${x(at)} ${above}V${height - below}"/>` +
      `<circle class="motif-at" cx="${x(at)}" cy="${y(line[at])}" r="4"/></svg>`;
    $("plot").onclick = (event) => {
      const inside = event.clientX - $("plot").firstChild.getBoundingClientRect().left;
      choose(Math.round(((inside - left) / (width - left - right)) * (line.length - 1)));
    };
  }

  machines.forEach((machine, i) => $("machine").add(new Option(machine.name, i)));
  $("machine").addEventListener("input", () => {
    $("motif").value = machines[$("machine").value].motif;
    show($("motif").value);
  });
  $("motif").addEventListener("input", () => {
    $("motif").value = $("motif").value.toUpperCase().replaceAll("U", "T");
    show($("motif").value);
  });
  $("length").addEventListener("input", () => {
    const k = Math.round($("length").valueAsNumber), machine = machines[$("machine").value];
    if (!(k >= 1 && k <= MAX)) return;
    $("motif").value = machine.best(k, argmax(machine.largest(k)), 1)[0][1];
    show($("motif").value);
  });
  $("position").addEventListener("input", () => {
    if ($("position").value) choose(Math.round($("position").valueAsNumber));
  });
  window.addEventListener("resize", draw);
  $("motif").value = machines[0].motif;
  show($("motif").value);
})();
