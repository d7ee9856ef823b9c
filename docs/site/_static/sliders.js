// Worlds with closed forms: sliders in, bars out. Each is compared with firmlib in tests/browser.
(() => {
  const bar = (label, value, firm) => ({ label, value, firm });
  const range = (name, min, max, step, value) => ({ name, min, max, step, value });

  const WORLDS = {
    proxy: {
      sliders: [range("ρ", -1, 1, 0.01, 0.8)],
      bars: ([rho]) => [
        bar("w of x₁", 1), bar("w of x₂", 0), bar("Q of x₁", 1, true), bar("Q of x₂", rho, true),
      ],
    },
    copy: {
      sliders: [range("ρ", 0, 0.99, 0.01, 0.9), range("λ", 0, 1, 0.01, 0.3)],
      bars: ([rho, lambda]) => {
        const lasso = [1 - lambda, 0];
        const a = 1 + lambda, det = a * a - rho * rho; // ridge: (Σ + λ I) w = (1, ρ)
        const ridge = [(a - rho * rho) / det, (rho * a - rho) / det];
        return [["lasso", lasso], ["ridge", ridge]].flatMap(([name, [u, v]]) => [
          bar(`${name}, w of x₁`, u), bar(`${name}, w of x₂`, v),
          bar(`${name}, Q of x₁`, u + rho * v, true), bar(`${name}, Q of x₂`, rho * u + v, true),
        ]);
      },
    },
    distance: {
      sliders: [range("d₁", 0, 8, 0.1, 1), range("d₂", 0, 8, 0.1, 6)],
      bars: (distances) => distances.flatMap((d, i) => {
        const variance = 1 + d * d / 4, x = `x${"₁₂"[i]}`;
        return [
          bar(`slope of ${x}`, d / 2 / variance),
          bar(`slope times sd of ${x}`, d / 2 / Math.sqrt(variance), true),
        ];
      }),
    },
    bend: {
      most: 5.2, // of the other worlds no bar is longer than 1
      sliders: [range("ε", -1, 1, 0.01, 0.5), range("μ", -2, 2, 0.05, 0)],
      bars: ([bend, mean]) => [
        bar("first order", Math.abs(1 + 2 * bend * mean)),
        bar("exact Q", Math.hypot(1 + 2 * bend * mean, Math.SQRT2 * bend), true),
      ],
    },
  };

  const element = (name, attributes, parent) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  };

  for (const box of document.querySelectorAll(".slider")) {
    const world = WORLDS[box.dataset.world];
    const inputs = world.sliders.map(({ name, value, ...limits }) => {
      const label = element("label", {}, box);
      label.append(`${name} `);
      const input = element("input", { type: "range", "data-name": name, ...limits }, label);
      input.value = value;
      input.shown = element("output", {}, label);
      return input;
    });
    const table = element("div", { class: "bars", role: "status" }, box);
    const update = () => {
      const values = inputs.map((input) => Number(input.value));
      inputs.forEach((input, i) => { input.shown.textContent = values[i]; });
      const bars = world.bars(values);
      const most = world.most ?? 1; // a fixed scale: every bar moves
      table.replaceChildren();
      for (const { label, value, firm } of bars) {
        element("span", { class: "name" }, table).textContent = label;
        const track = element("span", { class: "track" }, table);
        const width = `width: ${Math.min(100, (100 * Math.abs(value)) / most)}%`;
        element("span", { class: firm ? "bar firm" : "bar", style: width }, track);
        const number = element("span", { class: "value", "data-value": value }, table);
        number.textContent = value.toFixed(3);
      }
    };
    for (const input of inputs) input.addEventListener("input", update);
    update();
  }
})();
