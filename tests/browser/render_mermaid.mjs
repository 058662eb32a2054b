// Renders every Mermaid block of Markdown files with the pinned Mermaid in headless Chromium, the way a forge would,
// and checks what came out: a drawing, no error in it, every label readable.
// Mermaid's own parser is no substitute: it does not see the text limit, and above it `render` succeeds with a drawing
// of the error message.
//
// Usage: node tests/browser/render_mermaid.mjs [--png DIR] [--allow-none] FILE.md ...
// Prints a line a block; exits 1 when a block fails, or when there was no block at all (unless --allow-none).

import {mkdir, readFile} from 'node:fs/promises';
import {existsSync} from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';
import {chromium} from 'playwright-core';

const kBrowsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const kBrowserFlags = [
  '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update',
  '--disable-default-apps', '--disable-sync', '--no-first-run', '--disable-dev-shm-usage',
];
const kRenderTimeoutMs = 120_000;

/** The blocks of one Markdown text: their source and the line (1-based) of their opening fence. */
export function mermaid_blocks(markdown) {
  const blocks = [];
  let open = null;
  markdown.split('\n').forEach((line, index) => {
    if (open === null) {
      const fence = /^ {0,3}(`{3,}|~{3,})\s*(\S*)/.exec(line);
      if (fence) open = {fence: fence[1], mermaid: fence[2] === 'mermaid', line: index + 1, source: []};
    } else if (closes(line, open.fence)) {
      if (open.mermaid) blocks.push({line: open.line, source: open.source.join('\n')});
      open = null;
    } else {
      open.source.push(line);
    }
  });
  if (open?.mermaid) blocks.push({line: open.line, source: open.source.join('\n'), unclosed: true});
  return blocks;
}

function closes(line, fence) {
  const trimmed = line.trim();
  return trimmed.length >= fence.length && [...trimmed].every((character) => character === fence[0]);
}

/** The labels a flowchart's source asks for: what stands in quotes, with Mermaid's entities decoded. */
export function quoted_labels(source) {
  const labels = [];
  for (const line of source.split('\n')) {
    if (line.trimStart().startsWith('%%')) continue;
    for (const match of line.matchAll(/"([^"]*)"/g)) labels.push(decode_entities(match[1]));
  }
  return labels;
}

const kNamedEntities = {quot: '"', lt: '<', gt: '>', amp: '&', nbsp: ' '};

function decode_entities(text) {
  return text.replace(/#(\w+);/g, (whole, name) => {
    if (/^\d+$/.test(name)) return String.fromCodePoint(Number(name));
    return kNamedEntities[name] ?? whole;
  });
}

/** What can be compared of a label: a line break in the source is a break in the drawing, and text wraps. */
function comparable(text) {
  return text.replace(/<br\s*\/?>/gi, '').replace(/\s+/g, '');
}

/** What is wrong with a rendered block; empty where nothing is. */
export function problems_of(block, drawing) {
  if (drawing.error) return [`does not render: ${drawing.error}`];
  const problems = [];
  if (block.unclosed) problems.push('the fence is not closed');
  if (/Maximum text size/i.test(drawing.text)) problems.push('above the text limit: the drawing is an error message');
  if (/Syntax error/i.test(drawing.text) || drawing.error_elements > 0) problems.push('the drawing is an error message');
  if (drawing.nodes === 0) problems.push('no node in the drawing');
  const shown = comparable(drawing.text);
  for (const label of quoted_labels(block.source)) {
    if (!shown.includes(comparable(label))) problems.push(`label not readable in the drawing: ${label}`);
  }
  return problems;
}

/** Runs inside the page: draws one block and describes the drawing. */
async function draw_in_page({source, id}) {
  const host = document.getElementById('drawing');
  host.replaceChildren();
  try {
    const {svg} = await window.mermaid.render(id, source);
    host.innerHTML = svg;
  } catch (error) {
    return {error: String(error?.message ?? error).split('\n')[0]};
  }
  const drawn = host.querySelector('svg');
  return {
    text: drawn.textContent,
    nodes: drawn.querySelectorAll('.node, .actor, .task, .classGroup').length,
    edges: drawn.querySelectorAll('.flowchart-link, .edgePath, .relation, .messageLine0, .messageLine1').length,
    error_elements: drawn.querySelectorAll('.error-icon, .error-text').length,
  };
}

async function open_page(browser) {
  const page = await browser.newPage({viewport: {width: 1600, height: 1200}});
  page.setDefaultTimeout(kRenderTimeoutMs);
  await page.setContent('<!doctype html><meta charset="utf-8"><body style="background:#fff"><div id="drawing"></div></body>');
  const script = path.join(path.dirname(createRequire(import.meta.url).resolve('mermaid/package.json')), 'dist/mermaid.min.js');
  await page.addScriptTag({path: script});
  // No option but this one: a forge renders with Mermaid's own limits.
  await page.evaluate(() => window.mermaid.initialize({startOnLoad: false}));
  return page;
}

function parse_arguments(words) {
  const options = {files: [], png: null, allow_none: false};
  for (let i = 0; i < words.length; ++i) {
    if (words[i] === '--png') options.png = words[++i];
    else if (words[i] === '--allow-none') options.allow_none = true;
    else options.files.push(words[i]);
  }
  return options;
}

async function check_file(page, file, options) {
  const blocks = mermaid_blocks(await readFile(file, 'utf8'));
  let failed = 0;
  for (const [index, block] of blocks.entries()) {
    const drawing = await page.evaluate(draw_in_page, {source: block.source, id: `drawing${index}`});
    const problems = problems_of(block, drawing);
    if (options.png && !drawing.error) {
      const name = `${file.replace(/^[./]+/, '').replace(/[^\w.-]+/g, '_')}.${index + 1}.png`;
      await page.locator('#drawing').screenshot({path: path.join(options.png, name)});
    }
    const what = problems.length ? 'FAILED' : `ok, ${drawing.nodes} nodes, ${drawing.edges} edges, ${block.source.length} characters`;
    console.log(`${file}:${block.line}: ${what}`);
    for (const problem of problems) console.log(`  ${problem}`);
    failed += problems.length ? 1 : 0;
  }
  return {blocks: blocks.length, failed};
}

async function main(words) {
  const options = parse_arguments(words);
  const executablePath = kBrowsers.find((name) => existsSync(name));
  if (!executablePath) {
    console.error(`no Chromium (looked for ${kBrowsers.join(', ')})`);
    return 2;
  }
  if (options.png) await mkdir(options.png, {recursive: true});
  const browser = await chromium.launch({executablePath, headless: true, args: kBrowserFlags});
  const total = {blocks: 0, failed: 0};
  try {
    const page = await open_page(browser);
    for (const file of options.files) {
      const result = await check_file(page, file, options);
      total.blocks += result.blocks;
      total.failed += result.failed;
    }
  } finally {
    await browser.close();
  }
  console.log(`mermaid: ${options.files.length} files, ${total.blocks} blocks, ${total.failed} failed`);
  return total.failed > 0 || (total.blocks === 0 && !options.allow_none) ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
