'use strict';

const SECTOR = 32;
const LINE = 128;
const BANKS = 32;

const { kernels, shown } = JSON.parse(document.getElementById('data').textContent);

/** An element with attributes and children; children that are null are left out. */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

const grouped = (n) => n.toLocaleString('en');
const percent = (part, whole) => (part < whole && part > 0.999 * whole ? 'over 99.9 %' : `${((100 * part) / whole).toFixed(1)} %`);
const count = (n, unit) => `${grouped(n)} ${unit}${n === 1 ? '' : unit.endsWith('s') ? 'es' : 's'}`;
const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);
const extent = ([x, y, z]) => (z > 1 ? `${x}×${y}×${z}` : y > 1 ? `${x}×${y}` : `${x}`);

/** `0–3, 8`: numbers that rise, with runs drawn together. */
function ranges(numbers) {
  const runs = [];
  for (const n of numbers) {
    const last = runs.at(-1);
    if (last && last[1] === n - 1) last[1] = n;
    else runs.push([n, n]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(', ');
}

/** A sentence, whose names in backquotes are set as code. */
const sentence = (text) => text.split('`').map((part, i) => (i % 2 === 1 ? element('code', {}, part) : part));


/** The numbers of an access: averages of a request. */
function numbers(access) {
  const average = (n) => (n / access.requests).toFixed(2);
  const parts = [count(access.requests, 'request')];
  if (access.space === 'global') {
    parts.push(`${average(access.sectors)} sectors`, `${percent(access.used, SECTOR * access.sectors)} used`);
  } else {
    const conflicts = access.wavefronts - access.wavefronts_ideal;
    parts.push(`${average(access.wavefronts)} wavefronts`, `${average(conflicts)} conflicts`);
  }
  return parts;
}

/** The active lanes of a request, each with the byte it begins at. */
const lanesOf = (request) =>
  request.addresses.map((address, lane) => ({ lane, address })).filter(({ address }) => address !== null);

/** Lanes by the units of `bytes` they touch, in the order of the units. */
function byUnit(lanes, width, bytes) {
  const units = new Map();
  for (const { lane, address } of lanes) {
    for (let unit = Math.floor(address / bytes); unit * bytes < address + width; unit += 1) {
      if (!units.has(unit)) units.set(unit, []);
      units.get(unit).push(lane);
    }
  }
  return new Map([...units].sort(([a], [b]) => a - b));
}

const row = (label, content) => element('div', { class: 'row' }, element('span', {}, label), content);

const laneClass = (kind, lanes, text, title) => element('span', { class: kind, style: `--lane: ${lanes[0]}`, title }, text);

const chip = (lanes, title) => laneClass('chip', lanes, ranges(lanes), `${title}: lanes ${ranges(lanes)}`);

/** Global memory: the lines of a request, their sectors, and in them the words that lanes want. */
function sectorsFigure(request, width) {
  const lanes = lanesOf(request);
  const words = byUnit(lanes, width, 4);
  const sectors = byUnit(lanes, width, SECTOR);
  const lines = byUnit(lanes, width, LINE);
  const moved = SECTOR * sectors.size;
  const used = width * distinct(lanes.map(({ address }) => address)).length;
  const wordOf = (word) =>
    words.has(word)
      ? laneClass('word', words.get(word), ranges(words.get(word)), `byte ${grouped(4 * word)}: lanes ${ranges(words.get(word))}`)
      : element('span', {});
  const sectorOf = (sector) => {
    const content = sectors.has(sector) ? Array.from({ length: SECTOR / 4 }, (_, i) => wordOf((sector * SECTOR) / 4 + i)) : [];
    return element('div', { class: sectors.has(sector) ? 'sector moved' : 'sector' }, ...content);
  };
  const lineOf = (line) => {
    const first = (line * LINE) / SECTOR;
    const four = [0, 1, 2, 3].map((i) => sectorOf(first + i));
    return row(grouped(line * LINE), element('div', { class: 'sectors' }, ...four));
  };
  const caption = `${count(lanes.length, 'lane')}, ${count(sectors.size, 'sector')} in ${count(lines.size, 'line')}: ${count(moved, 'byte')} moved, ${grouped(used)} used (${percent(used, moved)})`;
  const bar = element('div', { class: 'bar' }, element('div', { style: `width: ${(100 * used) / moved}%` }));
  return figure(caption, bar, [row('byte', 'one row a line, four sectors each; in them the lanes, word by word'), ...[...lines.keys()].map(lineOf)]);
}

/** Shared memory: the banks, and in each the words it has to send, with the lanes that want them. */
function banksFigure(request, width) {
  const lanes = lanesOf(request);
  const groups = [];
  for (let first = 0; first < 32; first += request.together) {
    const group = lanes.filter(({ lane }) => lane >= first && lane < first + request.together);
    groups.push([...byUnit(group, width, 4)]);
  }
  const inBank = (bank) => (group) => {
    const words = group.filter(([word]) => word % BANKS === bank);
    return element('div', { class: 'chips' }, ...words.map(([word, wanting]) => chip(wanting, `bank ${bank}, byte ${4 * word}`)));
  };
  const bankOf = (bank) => row(`${bank}`, element('div', { class: 'groups' }, ...groups.map(inBank(bank))));
  const served = request.together < 32 ? `, ${request.together} lanes at a time` : '';
  const caption = `${count(lanes.length, 'lane')}: ${count(request.wavefronts, 'wavefront')}${served}`;
  const banks = Array.from({ length: BANKS }, (_, bank) => bankOf(bank));
  return figure(caption, null, [row('bank', 'each word it has to send, with the lanes that want it'), ...banks]);
}

/** Constant memory: the addresses of a request, each a pass. */
function passesFigure(request) {
  const lanes = lanesOf(request);
  const addresses = distinct(lanes.map(({ address }) => address));
  const passOf = (wanted) => {
    const wanting = lanes.filter(({ address }) => address === wanted).map(({ lane }) => lane);
    return row(grouped(wanted), element('div', { class: 'chips' }, chip(wanting, `byte ${wanted}`)));
  };
  const caption = `${count(lanes.length, 'lane')}: ${count(request.wavefronts, 'pass')}`;
  return figure(caption, null, [row('byte', 'one row a pass, with the lanes it serves'), ...addresses.map(passOf)]);
}

function figure(caption, bar, rows) {
  const label = element('figcaption', { class: 'number' }, caption);
  return element('figure', {}, label, bar, element('div', { class: 'rows' }, ...rows));
}

const figures = { global: sectorsFigure, shared: banksFigure, constant: passesFigure };

/** A kernel: its source with its accesses to choose from, and one request of the chosen access. */
class View {
  constructor(kernel, number, chosen) {
    this.kernel = kernel;
    this.number = number;
    this.excess = kernel.accesses.reduce((sum, access) => sum + access.excess, 0);
    this.title = element('h3', {});
    this.why = element('p', {});
    this.advice = element('ul', { class: 'advice' });
    this.figure = element('div', { 'aria-live': 'polite' });
    this.warp = this.slider('warp');
    this.iteration = this.slider('request');
    this.request = element(
      'section',
      { class: 'request', 'aria-label': `A request of ${kernel.kernel}` },
      this.title,
      this.why,
      this.advice,
      element('div', { class: 'sliders' }, this.warp.label, this.iteration.label),
      this.figure,
    );
    this.source = this.sourceView();
    if (kernel.accesses.length > 0) this.choose(chosen);
  }

  slider(name) {
    const input = element('input', { type: 'range', min: 0, value: 0, 'data-slider': name });
    const output = element('output', { class: 'number' });
    input.addEventListener('input', () => this.show());
    return { input, output, label: element('label', {}, output, input) };
  }

  sourceView() {
    const fields = element('fieldset', { class: 'source', 'aria-label': `Accesses of ${this.kernel.kernel}` });
    let file = null;
    for (const excerpt of this.kernel.source) {
      fields.append(element('div', { class: 'file' }, excerpt.file === file ? '…' : excerpt.file));
      file = excerpt.file;
      excerpt.lines.forEach((text, i) => {
        const line = excerpt.line + i;
        fields.append(element('div', { class: 'line' }, element('span', {}, `${line}`), element('code', { style: `--indent: ${text.search(/\S|$/)}` }, text)));
        this.kernel.accesses.forEach((access, n) => {
          if (access.file === file && access.line === line) fields.append(this.accessView(access, n));
        });
      });
    }
    return fields;
  }

  accessView(access, n) {
    const input = element('input', { type: 'radio', name: `access-${this.number}`, value: n });
    input.addEventListener('change', () => this.choose(n));
    const worst = n === this.kernel.worst ? element('strong', { class: 'worst' }, 'worst') : null;
    const parts = numbers(access).map((text) => element('span', { class: 'number' }, text));
    const heat = this.excess === 0 ? 0 : access.excess / this.excess;
    return element(
      'label',
      { class: 'access', style: `--heat: ${heat.toFixed(3)}` },
      input,
      element('span', {}, element('strong', {}, access.name), worst, ...parts),
    );
  }

  /** Shows access number `n`, from its first request on. */
  choose(n) {
    this.access = this.kernel.accesses[n];
    this.source.querySelector(`input[value="${n}"]`).checked = true;
    this.title.textContent = `Line ${this.access.line}, ${this.access.name}`;
    this.why.replaceChildren(...sentence(this.access.why));
    this.advice.replaceChildren(...this.access.advice.map((text) => element('li', {}, ...sentence(text))));
    this.warps = [];
    for (const sample of this.access.samples) {
      const last = this.warps.at(-1)?.[0];
      if (last && last.warp === sample.warp && `${last.block}` === `${sample.block}`) this.warps.at(-1).push(sample);
      else this.warps.push([sample]);
    }
    this.warp.input.max = this.warps.length - 1;
    this.warp.input.value = 0;
    this.iteration.input.value = 0;
    this.show();
  }

  /** Shows the request that the sliders stand at. */
  show() {
    if (this.warps.length === 0) {
      this.figure.replaceChildren(element('p', {}, 'No request of it was kept: others of its block’s warps make them.'));
      return;
    }
    const requests = this.warps[this.warp.input.valueAsNumber];
    this.iteration.input.max = requests.length - 1;
    const request = requests[this.iteration.input.valueAsNumber];
    const describe = ({ input, output }, text) => {
      output.textContent = text;
      input.setAttribute('aria-valuetext', text);
      input.setAttribute('aria-label', `${input.dataset.slider} of ${this.kernel.kernel}`);
      input.disabled = input.max === '0';
    };
    describe(this.warp, `block (${request.block.join(', ')}), warp ${request.warp}`);
    describe(this.iteration, `request ${this.iteration.input.valueAsNumber + 1} of ${requests.length} kept`);
    this.figure.replaceChildren(figures[this.access.space](request, this.access.width));
  }
}

function launchOf({ launch, blocks, counts_stated: isStated, case: name }) {
  const which = blocks.which === 'all' ? 'all simulated' : `simulated: ${blocks.which}`;
  const stated = isStated ? '' : '; counts not stated';
  return `${name}: ${extent(launch.grid)} blocks of ${extent(launch.block)} threads, ${which}${stated}`;
}

/** What the counts are called in Nsight Compute. */
function countersOf({ counters, arbitration }) {
  const counter = ({ count: name, metrics }) => [element('dt', {}, name), ...metrics.map((metric) => element('dd', {}, element('code', {}, metric)))];
  const note = arbitration ? element('p', {}, arbitration) : null;
  return element('details', { class: 'counters' }, element('summary', {}, 'In Nsight Compute'), element('dl', {}, ...counters.flatMap(counter)), note);
}

/** The access to begin with: the worst, or the one that is called like an access of another kernel, or the first. */
function firstChoice(kernel, other) {
  const like = kernel.accesses.findIndex((access) => other && access.name === other.name);
  return kernel.worst ?? Math.max(0, like);
}

const page = document.getElementById('page');
const front = kernels[shown];
const before = kernels[shown - 1];
const main = new View(front, shown, firstChoice(front, before?.accesses[before.worst]));
page.append(
  element(
    'article',
    { class: 'kernel shown', id: front.kernel },
    element('header', {}, element('h1', {}, front.kernel), element('p', {}, ...sentence(front.summary)), element('p', { class: 'quiet number' }, launchOf(front))),
    main.source,
    main.request,
    countersOf(front),
  ),
);
const others = kernels.map((kernel, number) => ({ kernel, number })).filter(({ number }) => number !== shown);
if (others.length > 0) {
  const ladder = element('section', { class: 'ladder', 'aria-label': 'Beside it in its family' });
  for (const { kernel, number } of others) {
    const view = new View(kernel, number, firstChoice(kernel, main.access));
    const place = number < shown ? 'The kernel before it' : 'The kernel after it';
    ladder.append(
      element(
        'article',
        { class: 'kernel', id: kernel.kernel },
        element('header', {}, element('p', { class: 'quiet' }, place), element('h2', {}, kernel.kernel), element('p', {}, ...sentence(kernel.summary))),
        view.source,
        view.request,
      ),
    );
  }
  page.append(ladder);
}
