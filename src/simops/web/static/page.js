"use strict";
// Live parts, ages that go on, tables that sort. Nothing is ever sent but a question.
(function () {
  const LOST_MS = 5000;
  let answered = performance.now();

  function ago(seconds) {
    for (const [size, name] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
      if (seconds >= size) return Math.floor(seconds / size) + " " + name + " ago";
    }
    return Math.floor(seconds) + " s ago";
  }

  function stamp(root) {
    root.querySelectorAll("time[data-age]").forEach(function (one) {
      one.received = performance.now() - parseFloat(one.dataset.age) * 1000;
    });
  }

  function tick() {
    const now = performance.now();
    document.querySelectorAll("time[data-age]").forEach(function (one) {
      const age = (now - one.received) / 1000;
      one.textContent = ago(age);
      if (one.dataset.stale) {
        const part = one.closest(".live");
        if (part) part.classList.toggle("stale", age > parseFloat(one.dataset.stale));
      }
    });
    const lost = document.querySelector("[data-live]") && now - answered > LOST_MS;
    const link = document.getElementById("link");
    link.className = lost ? "lost" : "";
    link.textContent = lost ? "simops ui has not answered for " + Math.floor((now - answered) / 1000) + " s" : "";
  }

  function parsed(text) {
    return new DOMParser().parseFromString(text, "text/html");
  }

  async function asked(address) {
    const answer = await fetch(address, { credentials: "omit", redirect: "error", cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    answered = performance.now();
    return parsed(await answer.text());
  }

  async function whole() {
    const main = (await asked(location.href)).querySelector("main");
    const open = Array.from(document.querySelectorAll("details"), (one) => one.open);
    document.querySelector("main").replaceWith(main);
    document.querySelectorAll("details").forEach(function (one, i) { if (open[i]) one.open = true; });
    begin();
  }

  async function follow(part) {
    const every = parseInt(part.dataset.every, 10);
    let next = every;
    try {
      if (!document.hidden) {
        const found = (await asked(part.dataset.live)).querySelector(".live");
        if (!part.isConnected) return;
        if (found.dataset.version !== part.dataset.version) return void await whole();
        part.replaceChildren(...found.childNodes);
        part.className = found.className;
        stamp(part);
        tick();
        if (!found.dataset.every) return;
      }
    } catch (error) {
      next = Math.max(every, 2000);
    }
    if (part.isConnected) setTimeout(follow, next, part);
  }

  function begin() {
    stamp(document);
    document.querySelectorAll("[data-live]").forEach(function (part) {
      setTimeout(follow, parseInt(part.dataset.every, 10), part);
    });
    tick();
  }

  function value(row, column) {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : parseFloat(cell.dataset.v);
  }

  document.addEventListener("click", function (event) {
    const head = event.target.closest("table.sortable thead th");
    if (!head) return;
    const body = head.closest("table").tBodies[0];
    head.up = !head.up;
    const rows = Array.from(body.rows).sort(function (a, b) {
      const x = value(a, head.cellIndex), y = value(b, head.cellIndex);
      const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
      return head.up ? order : -order;
    });
    body.append(...rows);
  });

  setInterval(tick, 1000);
  begin();
})();
