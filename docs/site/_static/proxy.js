// The proxy: s = x1, and x2 with correlation rho. E[s | x2 = t] = rho t, so Q = |rho|.
(() => {
  const box = document.getElementById("proxy");
  const slider = box.querySelector("input"), output = box.querySelector("output");
  const W = 640, H = 260, LIMIT = 3;
  const x = (v) => ((v + LIMIT) / (2 * LIMIT)) * W, y = (v) => ((LIMIT - v) / (2 * LIMIT)) * H;
  // The same 300 pairs of normal numbers every time (Box and Muller, from a linear congruence).
  let state = 1;
  const uniform = () => ((state = (state * 48271) % 2147483647) / 2147483647);
  const pairs = Array.from({ length: 300 }, () => {
    const r = Math.sqrt(-2 * Math.log(uniform())), a = 2 * Math.PI * uniform();
    return [r * Math.cos(a), r * Math.sin(a)];
  });
  const update = () => {
    const rho = Number(slider.value), Q = Math.abs(rho), rest = Math.sqrt(1 - rho * rho);
    output.textContent = rho.toFixed(2);
    const dots = pairs.map(([u, e]) => `<circle cx="${x(rho * u + rest * e)}" cy="${y(u)}" r="2.2"/>`);
    box.querySelector(".picture").innerHTML = `<svg viewBox="0 0 ${W} ${H}" role="img"
      aria-label="The score against x2, the line q with slope ${rho.toFixed(2)} and a band of half-width ${Q.toFixed(2)}">
      <rect class="band" x="0" width="${W}" y="${y(Q)}" height="${y(-Q) - y(Q)}"/>
      <g class="dots">${dots.join("")}</g>
      <line class="q" x1="0" y1="${y(-LIMIT * rho)}" x2="${W}" y2="${y(LIMIT * rho)}"/>
      <text x="8" y="16">score s</text><text x="${W - 8}" y="${H - 8}" text-anchor="end">x₂</text></svg>`;
    const bars = [["FIRM of x₂", Q, true], ["permutation importance of x₂", 0, false]];
    box.querySelector(".bars").innerHTML = bars.map(([name, value, firm]) => `<span class="name">${name}</span>
      <span class="track"><span class="bar${firm ? " firm" : ""}" style="width: ${100 * value}%"></span></span>
      <span class="value" data-value="${value}">${value.toFixed(2)}</span>`).join("");
  };
  slider.addEventListener("input", update);
  update();
})();
