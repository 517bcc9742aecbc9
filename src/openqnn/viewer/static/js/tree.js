// The groups of one pane: which are open, what stands for a node while groups around it are closed.

const MOST_AT_START = 160; // items that are shown before anybody opens a group
const LEAST_AT_START = 24; // a group that holds most nodes is opened where no more is shown, however much is in it

export class Tree {
  constructor(record) {
    this.count = record.nodes.length;
    this.groups = record.groups;
    this.open = new Set([this.count]);
    this.parents = new Int32Array(this.count + this.groups.length).fill(-1);
    this.groups.forEach((group, index) => group.items.forEach((item) => (this.parents[item] = this.count + index)));
    this.held = new Map();
    this.openSome();
  }

  isGroup(item) {
    return item >= this.count;
  }

  group(item) {
    return this.groups[item - this.count];
  }

  // Groups are opened from the outside in while there is room; what repeats stays closed.
  openSome() {
    let shown = this.groups[0].items.length;
    const largest = this.groups[0].items.filter((item) => this.isGroup(item) && !this.group(item).repeat)
      .sort((a, b) => this.group(b).size - this.group(a).size)[0];
    const waiting = this.groups[0].items.filter((item) => this.isGroup(item));
    while (waiting.length) {
      const item = waiting.shift();
      const group = this.group(item);
      const few = (item === largest || 2 * group.size > this.count) && shown < LEAST_AT_START;
      if (group.repeat || (shown + group.items.length > MOST_AT_START && !few)) continue;
      this.open.add(item);
      shown += group.items.length;
      waiting.push(...group.items.filter((each) => this.isGroup(each)));
    }
  }

  toggle(item) {
    if (!this.isGroup(item) || item === this.count) return;
    if (!this.open.delete(item)) this.open.add(item);
  }

  openAll() {
    this.groups.forEach((_, index) => this.open.add(this.count + index));
  }

  closeAll() {
    this.open = new Set([this.count]);
  }

  // The groups around an item but the whole, the innermost first.
  around(item) {
    const found = [];
    for (let at = this.parents[item]; at > this.count; at = this.parents[at]) found.push(at);
    return found;
  }

  reveal(item) {
    const closed = this.around(item).filter((group) => !this.open.has(group));
    closed.forEach((group) => this.open.add(group));
    return closed.length > 0;
  }

  // What is drawn for an item: itself, or the outermost closed group around it.
  shown(item) {
    return this.around(item).filter((group) => !this.open.has(group)).pop() ?? item;
  }

  nodesIn(item) {
    if (!this.isGroup(item)) return [item];
    if (!this.held.has(item)) this.held.set(item, this.group(item).items.flatMap((each) => this.nodesIn(each)));
    return this.held.get(item);
  }
}
