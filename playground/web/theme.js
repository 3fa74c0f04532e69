// The present color of a name in the style sheet, as canvas knows colors: they depend on light and dark.
export function themed(name) {
  themed.probe ??= document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
  themed.probe.style.color = `var(${name})`;
  return getComputedStyle(themed.probe).color;
}
