import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { verifies } from '@convoke/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { EXIT } from '../src/index.ts'
import { readListenAddress } from '../src/listen-address.ts'
import { Home, type Running } from './command.ts'
import { type Answer, openSession, post } from './mcp-client.ts'
import { scripted } from './servers.ts'

let home: Home
let temporary = ''
const running: Running[] = []
beforeEach(async () => {
  home = await Home.make()
  temporary = join(home.folder, 'tmp')
  await mkdir(temporary)
})
afterEach(async () => {
  for (const { child, ended } of running.splice(0)) {
    child.kill('SIGKILL')
    await ended
  }
  await home[Symbol.asyncDispose]()
})

async function serve(
  words: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<Running & { url: string }> {
  const started = home.start(['serve', '--http', '127.0.0.1:0', ...words], {
    env: { TMPDIR: temporary, ...env },
    timeoutMs: 60_000,
  })
  running.push(started)
  const [url] = await started.seen(/http:\/\/[\d.]+:\d+\/mcp/)
  return { ...started, url }
}

function toolNames(message: Answer['message']): string[] {
  const tools = message?.result?.['tools']
  return Array.isArray(tools) ? tools.map(({ name }: { name: string }) => name) : []
}

async function end(served: Running, signal: NodeJS.Signals = 'SIGTERM'): Promise<string> {
  served.child.kill(signal)
  const { code, stdout } = await served.ended
  expect(code).toBe(EXIT.ok)
  await home.whenQuiet()
  return stdout
}

const samples = async (): Promise<string[]> =>
  (await readdir(temporary)).filter((name) => name.startsWith('convoke-sample-'))

verifies(['command.028', 'command.029', 'command.030'], async () => {
  const served = await serve()
  await served.seen(/memory · 9 tools/)
  const [folder = ''] = await samples()
  expect((await stat(join(temporary, folder))).mode & 0o777).toBe(0o700)
  const session = await openSession(served.url)
  const { message } = await session.request('tools/list')
  const names = toolNames(message)
  expect(names).toEqual(expect.arrayContaining(['everything__echo', 'files__read_text_file', 'memory__read_graph']))
  const path = join(temporary, folder, 'files', 'welcome.md')
  const read = await session.request('tools/call', { name: 'files__read_text_file', arguments: { path } })
  expect(JSON.stringify(read.message?.result)).toContain('Welcome')
  const entity = { name: 'Ada', entityType: 'person', observations: ['x'] }
  await session.request('tools/call', { name: 'memory__create_entities', arguments: { entities: [entity] } })
  expect(await readFile(join(temporary, folder, 'memory.json'), 'utf8')).toContain('Ada')

  const stdout = await end(served)
  for (const line of [
    `claude mcp add --transport http convoke ${served.url}`,
    `{"mcpServers":{"convoke":{"url":"${served.url}"}}}`,
    `code --add-mcp '{"name":"convoke","type":"http","url":"${served.url}"}'`,
    `codex mcp add convoke --url ${served.url}`,
    '"args":[',
  ]) {
    expect(stdout).toContain(line)
  }
  expect(stdout).toMatch(/^everything · \d+ tools: echo, /m)
  expect(stdout).toMatch(/^files · \d+ tools: create_directory, /m)
  expect(await samples()).toEqual([])
  await expect(stat(join(home.folder, 'config'))).rejects.toThrow(/ENOENT/)

  const killed = await serve()
  killed.child.kill('SIGKILL')
  await killed.ended
  expect(await samples()).toHaveLength(1)
  const next = await serve()
  expect(await samples()).toHaveLength(1)
  await end(next, 'SIGINT')
  expect(await samples()).toEqual([])
})

test('serves what is configured, and says which server is not available', async () => {
  await home.configure({
    good: scripted({ tools: 2 }),
    exits: scripted({ exitAtStart: { code: 3 }, stderr: ['no licence'] }),
  })
  const served = await serve(['--server', 'good', '--server', 'exits'])
  await served.seen(/exits is failed: .*no licence/)
  const { message } = await (await openSession(served.url)).request('tools/list')
  expect(toolNames(message)).toHaveLength(2)
  expect(await samples()).toEqual([])
  await end(served)
})

test('lets a call in flight end before it ends itself', async () => {
  await home.configure({ s: scripted() })
  const served = await serve()
  const session = await openSession(served.url)
  await session.request('tools/call', { name: 's__echo', arguments: { text: 'warm' } })
  const call = session.request('tools/call', { name: 's__late', arguments: { ms: 1_500, text: 'in time' } })
  const seen = session.request('tools/call', { name: 's__seen', arguments: {} })
  expect(JSON.stringify((await seen).message)).toContain('late')
  await end(served)
  expect(JSON.stringify((await call).message)).toContain('in time')
})

verifies('command.031', async () => {
  await home.configure({ s: scripted({ banner: ['NOISE'], stderr: ['NOISE'] }) })
  const served = home.startProgram(
    process.execPath,
    [join(import.meta.dirname, '../bin/convoke.js'), 'serve', '--stdio'],
    { stdin: '' },
    true,
  )
  running.push(served)
  const send = (message: object): void =>
    void served.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  send({ id: 'first', method: 'initialize', params })
  await served.seen(/"id":"first"/)
  send({ method: 'notifications/initialized' })
  send({ id: 2, method: 'tools/call', params: { name: 's__echo', arguments: { text: 'over the pipe' } } })
  await served.seen(/over the pipe/)
  served.child.stdin?.end()
  const { code, stdout } = await served.ended
  expect(code).toBe(EXIT.ok)
  for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
  await home.whenQuiet()
})

verifies('command.032', async () => {
  await home.configure({ one: scripted({ tools: 2 }), other: scripted({ tools: 3 }) })
  const served = await serve(['--transparent', 'one'])
  const { message } = await (await openSession(served.url)).request('tools/list')
  expect(toolNames(message)).toContain('echo')
  expect(message?.result?.['tools']).toHaveLength(2)
  await end(served)
  const unknown = await home.run(['serve', '--transparent', 'on'])
  expect([unknown.code, unknown.stderr]).toEqual([EXIT.usage, expect.stringContaining('Did you mean "one"?')])
})

verifies('security.122', async () => {
  await home.configure({ s: scripted({ tools: 1 }) })
  for (const address of ['0.0.0.0:0', '[::]:0', '192.0.2.1:0']) {
    const { code, stdout, stderr } = await home.run(['serve', '--http', address])
    expect([address, code, stdout]).toEqual([address, EXIT.usage, ''])
    expect(stderr).toContain('--token-env NAME')
  }
  const token = 'k3Jx9QpL2mVw8RtY5nBz7HsD4fGc6WaE'
  const rows: [string[], Record<string, string>, RegExp][] = [
    [['--token-env', 'GONE'], {}, /The variable GONE of --token-env is not set/],
    [['--token-env', 'T'], { T: '' }, /The variable T of --token-env is not set/],
    [['--token-env', 'T'], { T: 'changeme' }, /fewer than 32 characters/],
    [['--token', token], {}, /--token-env NAME/],
    [['--stdio', '--http', '127.0.0.1:0'], {}, /--stdio has no address/],
  ]
  for (const [words, env, message] of rows) {
    const { code, stderr } = await home.run(['serve', ...words], { env })
    expect([words, code]).toEqual([words, EXIT.usage])
    expect(stderr).toMatch(message)
    expect(stderr).not.toContain('changeme')
  }
  const served = await serve(['--token-env', 'T'], { T: token })
  const initialize = {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
  }
  expect((await post(served.url, initialize)).status).toBe(401)
  expect((await post(served.url, initialize, { authorization: `Bearer ${token}x` })).status).toBe(401)
  expect((await post(served.url, initialize, { authorization: `Bearer ${token}` })).status).toBe(200)
  const stdout = await end(served)
  expect(stdout).toContain('codex mcp add convoke --url')
  expect(stdout).toContain('--bearer-token-env-var T')
  expect(stdout).not.toContain(token)

  const made = await serve(['--require-token'])
  const [, shown = ''] = await made.seen(/made for this run: ([\w-]{43})/)
  expect((await post(made.url, initialize)).status).toBe(401)
  expect((await post(made.url, initialize, { authorization: `Bearer ${shown}` })).status).toBe(200)
  await end(made)
})

test('takes another port when the usual one is in use, but not when it was asked for', async () => {
  await home.configure({ s: scripted({ tools: 1 }) })
  const holder = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => holder.once('listening', resolve))
  const { port } = holder.address() as { port: number }
  const busy = await home.run(['serve', '--http', `127.0.0.1:${port}`])
  expect([busy.code, busy.stdout]).toEqual([EXIT.failed, ''])
  expect(busy.stderr).toContain('in use')
  await new Promise((resolve) => holder.close(resolve))

  const first = home.start(['serve'])
  running.push(first)
  await first.seen(/http:\/\/127\.0\.0\.1:\d+\/mcp/)
  const second = home.start(['serve'])
  running.push(second)
  await second.seen(/Port 7337 is in use; another one is taken/)
  await second.seen(/http:\/\/127\.0\.0\.1:\d+\/mcp/)
  second.child.kill('SIGTERM')
  expect((await second.ended).code).toBe(EXIT.ok)
  await end(first)
})

test('refuses to serve when there is nothing that could be served', async () => {
  await home.configure('{}')
  const empty = await home.run(['serve'])
  expect([empty.code, empty.stderr]).toEqual([
    EXIT.configuration,
    expect.stringContaining(`There is no server in ${home.configFile}`),
  ])
  await home.configure({ wrong: { comand: 'x' } })
  expect((await home.run(['serve'])).code).toBe(EXIT.configuration)
})

test('reads every way to write an address', () => {
  const rows: [string, unknown][] = [
    ['127.0.0.1:8080', { hostname: '127.0.0.1', port: 8080 }],
    ['[::1]:0', { hostname: '::1', port: 0 }],
    ['localhost', { hostname: 'localhost', port: 7337 }],
    [':81', { hostname: '127.0.0.1', port: 81 }],
    ['81', { hostname: '127.0.0.1', port: 81 }],
  ]
  for (const [text, expected] of rows) expect([text, readListenAddress(text)]).toEqual([text, expected])
  for (const text of ['', ':', 'a:b', 'a:1:2', '::1:80', 'a:70000', '99999', 'http://a:1', 'a b:1', '[::1', 'a/b:1']) {
    expect(() => readListenAddress(text)).toThrow(/--http takes HOST:PORT/)
  }
})

verifies('command.033', async () => {
  const packed = join(home.folder, 'packed')
  for (const folder of ['bin', 'dist']) {
    const from = join(import.meta.dirname, '..', folder)
    await mkdir(join(packed, folder), { recursive: true })
    const names = (await readdir(from)).filter(
      (name) => !name.endsWith('.d.ts') && /^(bin|convoke|package|serve|prompts)/.test(name),
    )
    for (const name of names.filter((name) => /\.(cjs|json)$|^convoke\.js$/.test(name))) {
      await writeFile(join(packed, folder, name), await readFile(join(from, name)))
    }
  }
  await home.configure({ s: scripted({ tools: 1 }) })
  const bin = join(packed, 'bin/convoke.js')
  const listed = await home.startProgram(process.execPath, [bin, 'tools']).ended
  expect([listed.code, listed.stderr]).toEqual([EXIT.ok, ''])
  const served = home.startProgram(process.execPath, [bin, 'serve', '--http', '127.0.0.1:0'])
  running.push(served)
  await served.seen(/s · 1 tool/)
  await end(served)
})
