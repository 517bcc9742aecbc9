// Colours: of kinds of ops, of overlays, and of the page in light and dark.

const FAMILIES = [
  ["convolution", /^(Conv|DepthWise|Transpose[Cc]onv|Deconv|QLinearConv)/, "#3f74c8"],
  ["product", /MatMul|FullyConnected|Gemm|Attention|Einsum|Lstm|LSTM|GRU|Gru/, "#7355c4"],
  ["pooling and resizing", /Pool|Resize|Interp|GridSample|Upsample/, "#26807a"],
  ["activation", /Relu|Sigmoid|Tanh|Gelu|Swish|Softmax|Elu|Neuron|Clip|Erf/i, "#b5561f"],
  ["norm", /Norm|Batchnorm/, "#8f6b1d"],
  ["boundary", /^(Input|Output|Compiled)$/, "#5d6878"],
  ["shape", /Reshape|Transpose|Concat|Split|Slice|Pad|Gather|Pack|Expand|Tile|Squeeze|Flatten|Shape/, "#6c7685"],
  ["quantize and cast", /quant|Convert|Cast/i, "#a53f88"],
];
const OTHER = "#4f6078";
export const colourOfOp = (op) => (FAMILIES.find(([, pattern]) => pattern.test(op)) || [0, 0, OTHER])[2];

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
