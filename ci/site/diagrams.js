// Draws the diagrams of a page, if it has any: mermaid (2.9 MB) is loaded only then, from the site itself.
(() => {
  const diagrams = document.querySelectorAll("pre.mermaid");
  if (diagrams.length === 0) return;
  const script = document.createElement("script");
  script.src = `${window.path_to_root || ""}mermaid.tiny.js`;
  script.onload = () => {
    const dark = ["ayu", "coal", "navy"].some((theme) => document.documentElement.classList.contains(theme));
    mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral" });
    mermaid.run({ nodes: diagrams });
  };
  document.head.append(script);
})();
