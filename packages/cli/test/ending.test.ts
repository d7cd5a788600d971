import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { verifies } from '@convoke/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { EXIT } from '../src/index.ts'
import { BIN, Home } from './command.ts'
import { openSession } from './mcp-client.ts'
import { scripted } from './servers.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
beforeEach(() => home.configure({ s: scripted({ stubborn: { ignoreTerm: true, grandchildren: 1 } }) }))
afterAll(() => home[Symbol.asyncDispose]())

verifies('command.023', async () => {
  await home.configure({ s: scripted({ startDelayMs: 1_500 }), other: scripted({ startDelayMs: 1_500 }) })
  const listing = home.startOnTerminal(['tools'])
  await listing.seen(/waiting for (s, other|other|s)…/)
  expect((await listing.ended).code).toBe(EXIT.ok)
  const call = home.startOnTerminal(['call', 's/progress', 'count=4', 'everyMs=150'])
  await call.seen(/s\/progress (25|50|75|100) %/)
  expect((await call.ended).code).toBe(EXIT.ok)
  const piped = await home.run(['call', 's/progress', 'count=2'])
  expect(piped.stderr).toBe('')
  const inCi = home.startOnTerminal(['tools'], { env: { CI: '1' } })
  expect((await inCi.ended).stdout).not.toContain('waiting for')
})

verifies('command.024', async () => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    const call = home.start(['call', 's/silent', '--json'])
    await whenCalled(home)
    call.child.kill(signal)
    const { code, stdout, stderr } = await call.ended
    expect([signal, code, stderr]).toEqual([signal, EXIT.cancelled, 'error: cancelled\n'])
    expect(JSON.parse(stdout)).toMatchObject({ version: 1, outcome: 'failed', error: { code: 'CANCELLED' } })
    await home.whenQuiet()
  }
  await home.configure({ s: scripted({ startDelayMs: 60_000 }) })
  const listing = home.start(['tools'])
  await whenStarted(home)
  listing.child.kill('SIGINT')
  expect((await listing.ended).code).toBe(EXIT.cancelled)
  await home.whenQuiet()
})

test('takes a doubled Ctrl-C for one, ends at once on a later one, and leaves nothing either', async () => {
  await home.configure({ s: scripted() })
  const served = home.start(['serve', '--http', '127.0.0.1:0'])
  const [url] = await served.seen(/http:\/\/[\d.]+:\d+\/mcp/)
  const session = await openSession(url)
  const call = session.request('tools/call', { name: 's__silent', arguments: {} }).catch(() => undefined)
  const seen = await session.request('tools/call', { name: 's__seen', arguments: {} })
  expect(JSON.stringify(seen.message)).toContain('silent')
  const startedAtMs = performance.now()
  served.child.kill('SIGINT')
  served.child.kill('SIGINT')
  await served.seen(/Ending; waiting for one call in flight/)
  const again = setInterval(() => served.child.kill('SIGINT'), 50)
  const { code } = await served.ended
  clearInterval(again)
  expect(code).toBe(EXIT.cancelled)
  expect(performance.now() - startedAtMs).toBeLessThan(8_000)
  await call
  await home.whenQuiet()
})

test('cancels the call at the server, which gets to know it', async () => {
  const log = join(home.folder, 'cancelled.log')
  await home.configure({ s: { command: process.execPath, args: ['-e', CANCEL_WATCHER, log] } })
  const call = home.start(['call', 's/wait'])
  await whenWritten(log, /called/)
  call.child.kill('SIGINT')
  expect((await call.ended).code).toBe(EXIT.cancelled)
  await whenWritten(log, /cancelled/)
})

verifies('command.025', async () => {
  await home.configure({ s: scripted({ tools: 1500 }) })
  const bin = `node "$BIN" tools | head -n 1; echo "codes \${PIPESTATUS[*]}"`
  const { stdout, stderr } = await home.startProgram('bash', ['-c', bin], { env: { BIN } }).ended
  expect([stdout, stderr]).toEqual(['s · 1500 tools · ready\ncodes 0 0\n', ''])
  const closed = await home.startProgram('bash', ['-c', 'node "$BIN" tools --json >&-; echo "code $?"'], {
    env: { BIN },
  }).ended
  expect(closed.stdout).toBe('code 0\n')
  await home.whenQuiet()
})

/** A server that says in a file when it is called and when that is cancelled. */
const CANCEL_WATCHER = `
const { appendFileSync } = require('node:fs'); const log = process.argv[1]; let rest = ''
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
process.stdin.on('end', () => process.exit(0)).setEncoding('utf8').on('data', (chunk) => {
  const lines = (rest + chunk).split('\\n'); rest = lines.pop()
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (method === 'initialize') answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'w', version: '1' } })
    else if (method === 'tools/list') answer(id, { tools: [{ name: 'wait', inputSchema: { type: 'object' } }] })
    else if (method === 'tools/call') appendFileSync(log, 'called ')
    else if (method === 'notifications/cancelled') appendFileSync(log, 'cancelled ')
    else if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }) + '\\n')
  }
})`

async function until(isSo: () => Promise<boolean>, what: string): Promise<void> {
  const endAtMs = performance.now() + 15_000
  while (!(await isSo())) {
    if (performance.now() > endAtMs) throw new Error(`never: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

const whenWritten = (file: string, pattern: RegExp): Promise<void> =>
  until(async () => pattern.test(await readFile(file, 'utf8').catch(() => '')), `${file} holds ${String(pattern)}`)
const whenStarted = (at: Home): Promise<void> =>
  until(async () => (await at.processes()).some(({ command }) => command.includes('scripted-stdio')), 'the server runs')
/** The call itself leaves no trace; that the server is ready is seen by its tool list in the cache or by its grandchild. */
async function whenCalled(at: Home): Promise<void> {
  await until(
    async () => (await at.processes()).some(({ command }) => command.includes('scripted-grandchild')),
    'the server runs',
  )
}
