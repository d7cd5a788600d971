// Workload server over stdio, written by hand. Flags: common.mjs.
import { answer, makeTools, pause, readFlags } from './common.mjs'

const flags = readFlags()
if (flags.fail === 'exit') {
  process.stderr.write('failing as asked\n')
  process.exit(1)
}
if (flags['start-delay'] > 0) await pause(flags['start-delay'])
const tools = makeTools(flags)
const world = { flags, tools, list: flags.page > 0 ? undefined : JSON.stringify({ tools }) }

let waiting = []
function send(text) {
  if (waiting.length === 0) setImmediate(flush)
  waiting.push(text, '\n')
}
function flush() {
  process.stdout.write(waiting.join(''))
  waiting = []
}

async function receive(message) {
  if (message.id === undefined) return
  const text = await answer(message, world)
  if (text !== undefined) send(text)
}

let rest
process.stdin.on('data', (chunk) => {
  const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk])
  let at = 0
  for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, at)) {
    if (end > at) void receive(JSON.parse(bytes.toString('utf8', at, end)))
    at = end + 1
  }
  rest = at < bytes.length ? bytes.subarray(at) : undefined
})
process.stdin.on('end', () => process.exit(0))
