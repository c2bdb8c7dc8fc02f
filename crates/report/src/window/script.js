// The window: a measurement that goes on, sliders, pictures to save.
"use strict";
(() => {
  const part = id => document.getElementById(id);
  const put = (id, text) => {
    const element = part(id);
    if (element && element.textContent !== text) element.textContent = text;
  };

  // Pictures: as SVG, and as PNG of twice the size.
  const NAMES = ["paper", "raised", "ink", "muted", "grid", "band", "plain", "blue", "good", "bad", "yellow"];

  function drawing(svg) {
    const colours = getComputedStyle(document.documentElement);
    const values = NAMES.map(name => `--${name}:${colours.getPropertyValue(`--${name}`).trim()}`);
    const { width, height } = svg.viewBox.baseVal;
    const copy = svg.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("viewBox", `-8 -8 ${width + 16} ${height + 16}`);
    copy.setAttribute("width", width + 16);
    copy.setAttribute("height", height + 16);
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = `svg{${values.join(";")};background:var(--paper)}` +
      "text{font:14px sans-serif}polyline{fill:none}.dashed polyline{stroke-dasharray:8 4}" +
      ".dotted polyline{stroke-dasharray:2 3}.mixed polyline{stroke-dasharray:10 3 2 3}.off{opacity:.12}";
    copy.prepend(style);
    return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  }

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function raster(svg, done) {
    const image = new Image();
    const address = URL.createObjectURL(drawing(svg));
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * image.width;
      canvas.height = 2 * image.height;
      const context = canvas.getContext("2d");
      context.fillStyle = getComputedStyle(document.body).backgroundColor;
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(address);
      canvas.toBlob(done, "image/png");
    };
    image.src = address;
  }

  const plain = text => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "picture";

  function buttons(svg) {
    const label = svg.getAttribute("aria-label");
    const kinds = {
      SVG: () => save(drawing(svg), `${plain(label)}.svg`),
      PNG: () => raster(svg, blob => save(blob, `${plain(label)}.png`)),
    };
    const bar = document.createElement("p");
    bar.className = "save";
    for (const [kind, act] of Object.entries(kinds)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.setAttribute("aria-label", `Save ${label} as ${kind}`);
      button.addEventListener("click", act);
      bar.append(button);
    }
    svg.after(bar);
  }
  if (part("page")) document.querySelectorAll("svg").forEach(buttons);

  // A measurement: the server tells what is new.
  const watch = part("watch");
  if (watch && !("ended" in watch.dataset)) {
    const source = new EventSource(`events?job=${watch.dataset.job}`);
    source.onmessage = message => {
      const now = JSON.parse(message.data);
      for (const id of ["step", "left", "noise", "messages"]) put(id, now[id]);
      put("state", now.state);
      part("messages").hidden = now.messages === "";
      const progress = part("progress");
      if (now.total > 0) {
        progress.max = now.total;
        progress.value = Math.min(now.done, now.total);
      } else {
        progress.removeAttribute("value");
      }
      const pause = document.querySelector("#pause button");
      if (pause) pause.textContent = now.state === "Paused" ? "Continue" : "Pause";
      if (now.answer !== null) part("answer").innerHTML = now.answer;
      if (now.ended) {
        source.close();
        progress.hidden = true;
        document.querySelector(".buttons").hidden = true;
        const report = part("report");
        if (now.report) {
          report.href = now.report;
          report.hidden = false;
        }
      }
    };
  }

  // A drive: its life is lived anew when a slider moves, coarsely, and exactly when it rests.
  const drive = part("drive");
  if (drive) {
    let asking = null;
    const live = async exact => {
      // Coarse answers come in turn. An exact one is given up when a slider moves again.
      if (asking && !asking.exact && !exact) {
        asking.again = true;
        return;
      }
      asking?.control.abort();
      const mine = { exact, again: false, control: new AbortController() };
      asking = mine;
      put("living", "Simulating …");
      const query = new URLSearchParams(new FormData(drive));
      if (exact) query.set("exact", "yes");
      let told = "cryptmark does not answer any more.";
      try {
        const answer = await fetch(`life?${query}`, { signal: mine.control.signal });
        const text = await answer.text();
        if (answer.ok) part("life").innerHTML = text;
        told = answer.ok ? (exact ? "" : part("living").dataset.coarse) : "This cannot be simulated.";
      } catch {
        if (mine.control.signal.aborted) return;
      }
      put("living", told);
      asking = null;
      if (mine.again) live(false);
    };
    drive.addEventListener("input", event => {
      const output = drive.querySelector(`output[for="${event.target.id}"]`);
      if (output) output.textContent = `${event.target.value} ${output.dataset.unit}`;
      live(false);
    });
    drive.addEventListener("change", () => live(true));
    drive.addEventListener("submit", event => {
      event.preventDefault();
      live(true);
    });
  }
})();
