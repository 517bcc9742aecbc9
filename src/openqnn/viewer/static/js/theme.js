// Colours: of kinds of ops, of overlays, and of the page in light and dark.

// Names of ops of all frameworks, as Conv2d, CONV_2D and aten.conv2d: without their domain and underscores.
const FAMILIES = [
  ["boundary", /^(input|output|compiled|epcontext)$/, "#5d6878"],
  ["quantize and cast", /^(de|dynamic|fake|re)?quant|^convert$|^cast|^tocopy/, "#a53f88"],
  ["convolution", /conv/, "#3f74c8"],
  ["pooling and resizing", /pool|resize|interp|gridsample|upsample/, "#26807a"],
  ["product", /matmul|fullyconnected|innerproduct|gemm|attention|einsum|lstm|gru$|^(b|add)mm|^linear$|^dense$/, "#7355c4"],
  ["activation", /relu|sigmoid|tanh|gelu|swish|softmax|elu$|neuron|clip|clamp|erf|logistic|silu/, "#b5561f"],
  ["norm", /norm/, "#8f6b1d"],
  ["shape", /shape|transpose|concat|split|slice|pad|gather|pack|expand|tile|squeeze|flatten|permute|view|select\./, "#6c7685"],
];
const OTHER = "#4f6078";
const families = new Map();
export function colourOfOp(op) {
  if (!families.has(op)) {
    const name = op.toLowerCase().replace(/^(aten|prims|com\.microsoft|ai\.onnx(\.ml)?)\./, "").replace(/_/g, "");
    families.set(op, (FAMILIES.find(([, pattern]) => pattern.test(name)) || [0, 0, OTHER])[2]);
  }
  return families.get(op);
}

// One ramp for each overlay that is chosen: from its lightest to its darkest colour.
export const RAMPS = [
  [[255, 237, 178], [203, 36, 26]], [[214, 232, 250], [16, 76, 168]], [[216, 240, 214], [12, 108, 52]],
  [[238, 224, 246], [106, 36, 148]],
];
export const WORDS = ["#3f74c8", "#b5561f", "#26807a", "#8d3fa5", "#8f6b1d", "#a8324a", "#4f6078", "#5c7d1e"];

export function heat(share, ramp) {
  const [from, to] = RAMPS[ramp % RAMPS.length];
  return `rgb(${from.map((c, i) => Math.round(c + (to[i] - c) * share)).join(",")})`;
}

// Ink that can be read on a fill: dark on light, light on dark.
const inks = new Map();
export function inkOn(fill) {
  if (!inks.has(fill)) {
    const parts = fill.startsWith("#") ? [1, 3, 5].map((at) => parseInt(fill.slice(at, at + 2), 16)) : fill.match(/\d+/g).map(Number);
    inks.set(fill, 0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2] > 150 ? "#1c2430" : "#ffffff");
  }
  return inks.get(fill);
}

const NAMES = ["back", "card", "ink", "dim", "line", "edge", "mark", "group", "added", "removed", "changed"];
let colours = null;
export function themeColours() {
  if (!colours) {
    const style = getComputedStyle(document.documentElement);
    colours = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return colours;
}

export function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  colours = null;
}

export const isDark = () => document.documentElement.classList.contains("dark");
