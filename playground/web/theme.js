// The current color of a name in the style sheet, in a form that canvas understands. It depends on light or dark mode.
export function themed(name) {
  themed.probe ??= document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
  themed.probe.style.color = `var(${name})`;
  return getComputedStyle(themed.probe).color;
}
