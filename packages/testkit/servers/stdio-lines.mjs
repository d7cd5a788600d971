#!/usr/bin/env node
// A stdio server that writes exactly what its rules say, well-formed or not. The rules are the JSON in the last argument:
//   { "tools/call NAME" | "METHOD" | "answer" | "start": [step, …] }; "stubborn" ignores the end of input and SIGTERM, "alive" only never ends by itself.
// A step is a line (see `fill` for what is put in), or one of
//   { text } without a line end · { repeat: text, times } without line ends · { line, times } · { before, pad: bytes, after } one long line · { stderr, times? } · { log: path } adds its number to a file · { waitMs } · { exit: code } · { signal } ·
//   { grandchild: "own-session" | "same-group" } · { close: "stdin" | "stdout" } · { stopReading: true }
import { spawn } from 'node:child_process'
import { appendFileSync, closeSync } from 'node:fs'

const RULES = {
  'server/discover': ['{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"Method not found"}}'],
  initialize: [
    '{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":$VERSION,"capabilities":{"tools":{}},"serverInfo":{"name":"lines","version":"1"}}}',
  ],
  'tools/call seen': ['{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":$SEEN}]}}'],
  'tools/call echo': ['{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":$TEXT}]}}'],
  'tools/call env': ['{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":$SELF}]}}'],
  ...JSON.parse(process.argv.at(-1)),
}
const seen = []
const ids = new Map()

async function receive(message) {
  const { method, params, id } = message
  const key =
    method === undefined
      ? 'answer'
      : method === 'tools/call' && params?.name !== undefined
        ? `${method} ${params.name}`
        : method
  seen.push({ ...message, ...(method === 'tools/call' ? { key } : {}) })
  ids.set(params?.name ?? method, id)
  for (const step of RULES[key] ?? []) await run(step, message)
}

const ACTS = {
  text: ({ text }, message) => write(fill(text, message)),
  async line({ line, times }, message) {
    const text = `${fill(line, message)}\n`
    for (let count = 0; count < times; count++) await write(text)
  },
  // In one piece: answers to other calls must not come in between.
  pad: ({ before, pad, after }, message) =>
    write(`${fill(before, message)}${'x'.repeat(pad)}${fill(after, message)}\n`),
  async repeat({ repeat, times }) {
    for (let left = times; left > 0; left -= 20_000) await write(repeat.repeat(Math.min(left, 20_000)))
  },
  stderr: ({ stderr, times = 1 }) =>
    new Promise((resolve) => process.stderr.write(stderr.repeat(times), () => resolve())),
  waitMs: ({ waitMs }) => new Promise((resolve) => setTimeout(resolve, waitMs)),
  log: ({ log }) => appendFileSync(log, `${process.pid}\n`),
  exit: ({ exit }) => process.exit(exit),
  signal: ({ signal }) => process.kill(process.pid, signal),
  stopReading: () => void process.stdin.pause(),
  close({ close }) {
    if (close === 'stdout') return void process.stdout.end()
    process.stdin.pause()
    closeSync(0)
  },
  grandchild: ({ grandchild }) => startGrandchild(grandchild),
}

async function run(step, message) {
  if (typeof step === 'string') return write(`${fill(step, message)}\n`)
  for (const [name, act] of Object.entries(ACTS)) if (step[name] !== undefined) return act(step, message)
}

/** Resolves when the pipe has taken it, so that a flood keeps the pipe's pace. */
function write(text) {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()))
}

/** $ID of this request, $ID(NAME) of the last one with that name, $TOKEN, $REQUEST (of a cancellation), $VERSION, $TEXT, $SEEN, $SELF, $ANSWER. */
function fill(template, { id, params, result, error }) {
  const self = { env: process.env, argv: process.argv.slice(2, -1), cwd: process.cwd(), pid: process.pid }
  const values = {
    ID: id,
    TOKEN: params?._meta?.progressToken,
    REQUEST: params?.requestId,
    VERSION: params?.protocolVersion,
    TEXT: String(params?.arguments?.text ?? ''),
    SEEN: JSON.stringify(seen),
    SELF: JSON.stringify(self),
    ANSWER: JSON.stringify(error ?? result),
  }
  return template
    .replace(/\$ID\(([^)]*)\)/g, (_, name) => JSON.stringify(ids.get(name) ?? null))
    .replace(/\$(ID|TOKEN|REQUEST|VERSION|TEXT|SEEN|SELF|ANSWER)\b/g, (_, name) => JSON.stringify(values[name] ?? null))
}

/** Says READY on stderr when it runs and can no longer be told to end. */
function startGrandchild(where) {
  const code = `for (const name of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(name, () => {}); setInterval(() => {}, 60_000); process.send('ready')`
  const child = spawn(process.execPath, ['-e', code, 'lines-grandchild'], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    detached: where === 'own-session',
  })
  return new Promise((resolve) =>
    child.once('message', () => {
      child.disconnect()
      child.unref()
      process.stderr.write(`GRANDCHILD ${child.pid}\n`, () => resolve())
    }),
  )
}

if (RULES.stubborn !== undefined) process.on('SIGTERM', () => {})
if (RULES.stubborn !== undefined || RULES.alive !== undefined) setInterval(() => {}, 60_000)
for (const step of RULES.start ?? []) await run(step, {})
let rest = ''
let busy = Promise.resolve()
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop()
  for (const line of lines) {
    const message = JSON.parse(line)
    // A rule that waits must not keep others waiting; the order of those that do not wait is kept all the same.
    busy = busy.then(() => void receive(message))
  }
})
process.stdin.on('end', () => {
  if (RULES.stubborn === undefined) process.exit(0)
})
process.stdout.on('error', () => process.exit(0))
