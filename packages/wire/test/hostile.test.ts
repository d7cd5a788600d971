// Bad moments and bad intentions: kills, floods, races. The leak check at the end of the file is half of every test here.
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { everythingStdio, memoryStdio } from '@convoke/testkit'
import { nodePlatform, reapLeftovers, Session, WireError } from '@convoke/wire'
import { expect, test } from 'vitest'
import { connect, isAlive, linesServer, result, textOf, until } from './lines.ts'

const HOST = fileURLToPath(new URL('./host.ts', import.meta.url))

test('closing while the server floods its output takes no more time or memory than any other close', async () => {
  const line = `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"${'x'.repeat(60_000)}"}}`
  let heard = 0
  const session = await connect({ 'tools/call flood': [{ line, times: 1_000_000 }] }, { onNotification: () => heard++ })
  const call = session.callTool('flood').catch((error: unknown) => error)
  await until(() => heard > 20)
  const before = process.memoryUsage().heapUsed
  const startedAtMs = performance.now()
  await session.close()
  const heardAtClose = heard
  expect(performance.now() - startedAtMs).toBeLessThan(5_000)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(100_000_000)
  expect(await call).toMatchObject({ code: 'closed' })
  await new Promise((resolve) => setImmediate(resolve))
  expect(heard).toBe(heardAtClose)
})

test('a suspended server is ended all the same', async () => {
  const session = await connect()
  process.kill(session.pid as number, 'SIGSTOP')
  const startedAtMs = performance.now()
  await session.close()
  expect(performance.now() - startedAtMs).toBeLessThan(5_500)
  expect(isAlive(session.pid as number)).toBe(false)
})

test('a grandchild that goes on writing into the pipe keeps no dead server alive', async () => {
  const code = `
    require('node:child_process').spawn('sh', ['-c', 'trap "" TERM; while :; do echo "{}"; sleep 0.05; done'], { stdio: ['ignore', 'inherit', 'inherit'] })
    process.stdin.once('data', (line) => {
      const { id } = JSON.parse(line)
      process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25' } }) + '\\n', () => setTimeout(() => process.exit(3), 100))
    })`
  const session = await Session.connect({
    target: { kind: 'stdio', command: process.execPath, args: ['-e', code] },
    era: 'legacy',
  })
  const startedAtMs = performance.now()
  expect(await session.closed).toMatchObject({ cause: 'process-exited', exitCode: 3 })
  expect(performance.now() - startedAtMs).toBeLessThan(6_000)
  await session.close()
})

test('a host killed at any moment of its start leaves nothing that the next start does not end', async () => {
  const state = await mkdtemp(join(tmpdir(), 'wire-'))
  for (const afterMs of [250, 400, 550, 700, 850, 1_000]) {
    const host = spawn(process.execPath, ['--conditions=@convoke/source', HOST, state, 'wait'], { stdio: 'ignore' })
    const gone = new Promise((resolve) => host.once('close', resolve))
    await new Promise((resolve) => setTimeout(resolve, afterMs))
    host.kill('SIGKILL')
    await gone
    await reapLeftovers(state)
    const left = nodePlatform.processes
      .carrying('CONVOKE_LEASE')
      .filter(({ pid }) => nodePlatform.processes.variable(pid, 'TMPDIR') === process.env['TMPDIR'])
    expect(left, `after ${afterMs} ms`).toEqual([])
  }
  expect(await readdir(state)).toEqual([])
  await rm(state, { recursive: true })
}, 60_000)

test('what a host leaves that died while writing its lease is cleared away', async () => {
  const state = await mkdtemp(join(tmpdir(), 'wire-'))
  const draft = join(state, `host-77-${'0'.repeat(32)}.json.77.3.tmp`)
  const fresh = join(state, `host-78-${'0'.repeat(32)}.json.78.3.tmp`)
  for (const path of [draft, fresh]) await writeFile(path, '{', { mode: 0o600 })
  const old = new Date(Date.now() - 2 * 3_600_000)
  await utimes(draft, old, old)
  await reapLeftovers(state)
  expect(await readdir(state)).toEqual([fresh.slice(state.length + 1)])
  await rm(state, { recursive: true })
})

test('two hosts that reap at once do each other no harm', async () => {
  const state = await mkdtemp(join(tmpdir(), 'wire-'))
  const host = spawn(process.execPath, ['--conditions=@convoke/source', HOST, state, 'wait'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = new Promise((resolve) => host.once('close', resolve))
  const [text] = (await new Promise<Buffer[]>((resolve) =>
    host.stdout.once('data', (...data: Buffer[]) => resolve(data)),
  )) as [Buffer]
  const pids = JSON.parse(text.toString()) as number[]
  host.kill('SIGKILL')
  await gone
  await Promise.all([reapLeftovers(state), reapLeftovers(state), reapLeftovers(state)])
  expect(pids.filter(isAlive)).toEqual([])
  await rm(state, { recursive: true })
})

test('twenty sessions at once, some closed at once, leave no descriptor open', async () => {
  const descriptors = (): number => readdirSync('/proc/self/fd').length
  const before = descriptors()
  const sessions = await Promise.allSettled(
    Array.from({ length: 20 }, async (_, index) => {
      const session = await connect(index % 3 === 0 ? { initialize: [{ exit: 1 }] } : {})
      if (index % 3 === 1) return session.close()
      expect(textOf(await session.callTool('echo', { text: String(index) }))).toBe(String(index))
      await Promise.all([session.close(), session.close()])
    }),
  )
  expect(sessions.filter(({ status }) => status === 'rejected')).toHaveLength(7)
  await until(() => descriptors() <= before)
}, 60_000)

test('a handler that answers after the connection is over harms nobody', async () => {
  let answer: ((value: object) => void) | undefined
  const session = await connect(
    { 'tools/call ask': ['{"jsonrpc":"2.0","id":1,"method":"roots/list"}'] },
    { handlers: { 'roots/list': () => new Promise((resolve) => (answer = resolve as (value: object) => void)) } },
  )
  const call = session.callTool('ask').catch((error: unknown) => error)
  await until(() => answer !== undefined)
  await session.close()
  expect(await call).toBeInstanceOf(WireError)
  answer?.({ roots: [] })
  await new Promise((resolve) => setImmediate(resolve))
  session.notify('notifications/roots/list_changed')
})

test('the first byte of a server is told once', async () => {
  let count = 0
  const session = await connect({ start: ['installing…'] }, { onFirstOutput: () => count++ })
  await session.callTool('echo', { text: '' })
  await session.close()
  expect(count).toBe(1)
})

test('parameters that are no JSON fail their call alone', async () => {
  await using session = await connect()
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  await expect(session.callTool('echo', circular)).rejects.toThrow(TypeError)
  await expect(session.callTool('echo', { big: 1n })).rejects.toThrow(TypeError)
  expect(textOf(await session.callTool('echo', { text: 'on' }))).toBe('on')
})

test('a message nested a million deep fails its call before anybody walks it', async () => {
  await using session = await connect({
    'tools/call deep': [
      { text: '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"deep":' },
      { repeat: '[', times: 1_000_000 },
      { repeat: ']', times: 1_000_000 },
      '}}',
    ],
    'tools/call open': [
      { text: '{"jsonrpc":"2.0","id":$ID,"result":{"x":' },
      { repeat: '{"a":', times: 400_000 },
      '',
      result('done'),
    ],
  })
  const before = process.cpuUsage()
  const deep = await session.callTool('deep').catch((error: unknown) => error)
  expect(deep).toMatchObject({ code: 'too-large', message: 'The answer to "tools/call" is nested more than 1000 deep' })
  await expect(session.callTool('open')).rejects.toMatchObject({ code: 'too-large' })
  const { user, system } = process.cpuUsage(before)
  expect(user + system).toBeLessThan(2_000_000)
  expect(textOf(await session.callTool('echo', { text: 'on' }))).toBe('on')
})

test('real servers survive being opened and closed by many at once', async () => {
  const file = join(await mkdtemp(join(tmpdir(), 'wire-')), 'graph.jsonl')
  const results = await Promise.all(
    Array.from({ length: 4 }, async (_, index) => {
      await using session = await Session.connect({ target: index % 2 === 0 ? everythingStdio() : memoryStdio(file) })
      return (await session.list('tools')).items.length
    }),
  )
  expect(Math.min(...results)).toBeGreaterThan(5)
  await rm(join(file, '..'), { recursive: true })
}, 60_000)

test('a stubborn server behind an aborted start does not outlive the error', async () => {
  const controller = new AbortController()
  const failing = Session.connect({
    target: linesServer({ stubborn: [], 'server/discover': [], initialize: [] }),
    signal: controller.signal,
    onFirstOutput: () => {},
  }).catch((error: unknown) => error)
  setTimeout(() => controller.abort(), 400)
  expect(await failing).toMatchObject({ code: 'cancelled' })
  const left = nodePlatform.processes
    .carrying('CONVOKE_LEASE')
    .filter(({ pid }) => nodePlatform.processes.facts(pid)?.parentPid === process.pid)
  expect(left).toEqual([])
})
