"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const articles = [...document.querySelectorAll("article")];
  const rows = new Map([...document.querySelectorAll("#tree a")].map((row) => [placeOf(row.hash), row]));
  const last = new Map(); // parent -> the child that was appended last
  data.parents.forEach((parent, place) => last.set(parent, place));
  let path = new Set();

  function placeOf(hash) {
    const found = /^#e(\d+)$/.exec(hash);
    return found ? Number(found[1]) : -1;
  }

  // Branches

  function pathTo(leaf) {
    const places = new Set();
    for (let at = leaf; at >= 0 && !places.has(at); at = data.parents[at]) places.add(at);
    return places;
  }

  function showBranch(leaf) {
    path = pathTo(leaf);
    for (const article of articles) article.classList.toggle("off", !path.has(Number(article.id.slice(1))));
    for (const [place, row] of rows) row.classList.toggle("on", path.has(place));
  }

  function leafBelow(place) {
    const seen = new Set();
    while (last.has(place) && !seen.has(place)) {
      seen.add(place);
      place = last.get(place);
    }
    return place;
  }

  function reveal(element) {
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  }

  function go(place) {
    if (place < 0 || place >= data.parents.length) return;
    if (!path.has(place)) showBranch(leafBelow(place));
    let at = place;
    while (at >= 0 && !$("e" + at)) at = data.parents[at];
    const target = $("e" + at);
    if (!target) return;
    reveal(target);
    target.scrollIntoView({ block: "start" });
    // What is above takes its real height once it was seen.
    requestAnimationFrame(() => target.scrollIntoView({ block: "start" }));
    mark(place);
    document.body.classList.remove("menu");
  }

  function mark(place) {
    document.querySelector("#tree a.here")?.classList.remove("here");
    const row = rows.get(place);
    row?.classList.add("here");
    row?.scrollIntoView({ block: "nearest" });
  }

  addEventListener("hashchange", () => go(placeOf(location.hash)));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#e']");
    if (link) {
      event.preventDefault();
      if (location.hash === link.hash) go(placeOf(link.hash));
      else location.hash = link.hash;
    }
    const image = event.target.closest(".shot");
    if (image) image.classList.toggle("big");
    if (event.target.id === "main" || event.target.closest("#main")) document.body.classList.remove("menu");
  });

  // Search

  const texts = new Map();
  const textOf = (article) => {
    if (!texts.has(article)) texts.set(article, article.textContent.toLowerCase());
    return texts.get(article);
  };
  let hits = [];
  let hit = -1;

  function ranges(article, words) {
    const found = [];
    const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue;
      for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) {
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + words.length);
        found.push(range);
      }
    }
    return found;
  }

  function paint(name, list) {
    if (!("highlights" in CSS)) return;
    if (list.length) CSS.highlights.set(name, new Highlight(...list));
    else CSS.highlights.delete(name);
  }

  function search() {
    const words = $("search").value.trim().toLowerCase();
    hit = -1;
    paint("now", []);
    if (!words) {
      hits = [];
      paint("found", []);
      $("found").textContent = "";
      for (const row of rows.values()) row.classList.remove("miss");
      return;
    }
    hits = articles.filter((article) => textOf(article).includes(words));
    const places = new Set();
    for (const article of hits) {
      places.add(Number(article.id.slice(1)));
      for (const call of article.querySelectorAll(".call[id]"))
        if (call.textContent.toLowerCase().includes(words)) places.add(Number(call.id.slice(1)));
    }
    for (const [place, row] of rows)
      row.classList.toggle("miss", !places.has(place) && !row.textContent.toLowerCase().includes(words));
    paint("found", hits.slice(0, 200).flatMap((article) => ranges(article, words)).slice(0, 5000));
    $("found").textContent = hits.length === 1 ? "1 entry" : hits.length + " entries; Enter goes to the next";
  }

  function nextHit(step) {
    if (!hits.length) return;
    hit = (hit + step + hits.length) % hits.length;
    const article = hits[hit];
    const place = Number(article.id.slice(1));
    if (!path.has(place)) showBranch(leafBelow(place));
    const range = ranges(article, $("search").value.trim().toLowerCase())[0];
    const target = range ? range.startContainer.parentElement : article;
    reveal(target);
    target.scrollIntoView({ block: "center" });
    requestAnimationFrame(() => target.scrollIntoView({ block: "center" }));
    paint("now", range ? [range] : []);
    mark(place);
    $("found").textContent = hit + 1 + " of " + hits.length;
  }

  let waiting = 0;
  $("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, articles.length > 2000 ? 300 : 100);
  });
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(waiting);
      if (!hits.length) search();
      nextHit(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      $("search").value = "";
      search();
      $("search").blur();
    }
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && event.target.tagName !== "INPUT") {
      event.preventDefault();
      document.body.classList.add("menu");
      $("search").focus();
    }
  });

  // Filters, folding, theme, menu, copying

  for (const button of document.querySelectorAll("[data-filter]"))
    button.addEventListener("click", () => {
      $("tree").className = button.dataset.filter;
      for (const other of document.querySelectorAll("[data-filter]"))
        other.setAttribute("aria-pressed", String(other === button));
    });

  let unfolded = false;
  $("unfold").addEventListener("click", () => {
    unfolded = !unfolded;
    for (const details of document.querySelectorAll("article:not(.off) details")) details.open = unfolded;
    $("unfold").textContent = unfolded ? "Fold" : "Unfold";
  });

  const themes = ["", "light", "dark"];
  const names = { "": "Theme", light: "Light", dark: "Dark" };
  const store = {
    get: () => { try { return localStorage.getItem("theme") ?? ""; } catch { return ""; } },
    set: (theme) => { try { localStorage.setItem("theme", theme); } catch { /* a file may have no store */ } },
  };
  function setTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    $("theme").textContent = names[theme];
  }
  setTheme(themes.includes(store.get()) ? store.get() : "");
  $("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? "";
    const next = themes[(themes.indexOf(now) + 1) % themes.length];
    setTheme(next);
    store.set(next);
  });

  $("menu").addEventListener("click", (event) => {
    event.stopPropagation();
    const open = document.body.classList.toggle("menu");
    $("menu").setAttribute("aria-expanded", String(open));
  });

  $("main").addEventListener("mouseover", (event) => {
    const pre = event.target.closest("pre");
    if (!pre || pre.querySelector(".copy") || !navigator.clipboard) return;
    const button = document.createElement("button");
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const text = pre.textContent.slice(0, -button.textContent.length);
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Failed";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    pre.append(button);
  });

  const local = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });
  for (const time of document.querySelectorAll("time")) {
    const date = new Date(time.dateTime);
    if (!Number.isNaN(date.getTime())) time.textContent = local.format(date);
  }

  path = pathTo(data.leaf);
  if (location.hash) go(placeOf(location.hash));
})();
