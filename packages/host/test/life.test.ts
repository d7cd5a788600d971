// How servers live and die: crashes, restarts, reconnects, and the end of everything.
import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { HostEvent } from '@convoke/host'
import { scriptedStdio, startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { callTool, eventOf, hostOf, http, isAlive, scripted, seenBy, stateOf, statusOf, textIn } from './support.ts'

verifies(['connection.020', 'connection.022'], async () => {
  const { host } = await hostOf([scripted('s', { lastWords: 'out of memory' }), scripted('other')])
  await using _ = host
  await host.whenSettled()
  await using old = await host.bind()
  const crashedAtMs = performance.now()
  const told = eventOf(host, 'server.state-changed', ({ status }) => status.name === 's')
  expect((await callTool(old, 's/crash')).kind).toBe('unknown')
  const { status } = await told
  expect(performance.now() - crashedAtMs).toBeLessThan(2_000)
  expect(status).toMatchObject({
    state: 'failed',
    reason: {
      code: 'SERVER_EXITED',
      message: expect.stringMatching(/^Server "s" ended with code 7 \(last stderr line: out of memory\)\. To see why/),
    },
  })
  expect(status.pid).toBeUndefined()
  expect(status.nextRetryAtMs).toBeGreaterThan(Date.now() - 1)
  await using without = await host.bind()
  expect(without.resolveTool('s/echo')).toMatchObject({ kind: 'server-not-ready', status: { state: 'failed' } })
  expect(without.resolveTool('other/echo').kind).toBe('found')
  await host.reconnect('s')
  await using fresh = await host.bind()
  expect(textIn(await callTool(fresh, 's/echo', { text: 'back' }))).toBe('back')
  // The old view does not follow.
  expect(await callTool(old, 's/echo')).toMatchObject({ kind: 'failed', error: { code: 'CONNECTION_LOST' } })
})

verifies('connection.021', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-host-'))
  try {
    const log = join(folder, 'starts.log')
    const starts = async (): Promise<number> =>
      (await readFile(log, 'utf8')).split('\n').filter((line) => line.includes('"start"')).length
    const { host } = await hostOf([scripted('s', { log, initialize: 'error' })])
    await using _ = host
    await host.whenSettled()
    const first = statusOf(host, 's')
    expect((first.nextRetryAtMs ?? 0) - first.sinceAtMs).toBe(1_000)
    // Needing it too early changes nothing, and no timer starts it.
    await host.whenSettled({ servers: ['s'] })
    await using _early = await host.bind()
    expect(statusOf(host, 's')).toEqual(first)
    await expect
      .poll(() => Date.now(), { interval: 50, timeout: 5_000 })
      .toBeGreaterThan((first.nextRetryAtMs ?? 0) + 100)
    expect(await starts()).toBe(1)
    // The next one who needs it starts it, and the pause doubles.
    await host.whenSettled({ servers: ['s'] })
    const second = statusOf(host, 's')
    expect((second.nextRetryAtMs ?? 0) - second.sinceAtMs).toBe(2_000)
    expect(await starts()).toBe(2)
  } finally {
    await rm(folder, { recursive: true })
  }
})

verifies('connection.023', async () => {
  const { host, events } = await hostOf([scripted('s'), scripted('other')])
  await using _ = host
  await host.whenSettled()
  const pids = (): (number | undefined)[] => host.statuses.map(({ pid }) => pid)
  const before = pids()
  const old = await host.bind()
  expect((await host.reconnect('s')).state).toBe('ready')
  expect(pids()[1]).toBe(before[1])
  expect(pids()[0]).not.toBe(before[0])
  // The view still speaks to the process it was taken from; a new one speaks to the new.
  expect((await seenBy(old, 's')).pid).toBe(before[0])
  await using fresh = await host.bind()
  expect((await seenBy(fresh, 's')).pid).toBe(pids()[0])
  expect(fresh.tools).toBe(old.tools)
  await old[Symbol.asyncDispose]()
  await expect.poll(() => isAlive(before[0]), { timeout: 6_000 }).toBe(false)
  expect(events.some(({ kind }) => kind === 'tool-catalog.changed')).toBe(false)
  await expect(host.reconnect('nobody')).rejects.toMatchObject({ code: 'SERVER_UNKNOWN' })
})

test('a process that nobody holds any more is gone before the one that replaces it starts', async () => {
  const { host } = await hostOf([scripted('s', { stubborn: { ignoreStdinEnd: true } }), scripted('other')], {
    closeGraceMs: 600,
  })
  await using _ = host
  await host.whenSettled()
  const held = statusOf(host, 's').pid
  const again = await host.reconnect('s')
  expect(again.state).toBe('ready')
  // It takes 600 ms to end: were it not waited for, it would still be there.
  expect(isAlive(held)).toBe(false)
})

test('a reconnect during a start ends that start', async () => {
  const { host } = await hostOf([scripted('s', { listDelayMs: 300 })])
  await using _ = host
  await stateOf(host, 's', 'starting')
  const [first, second] = await Promise.all([host.reconnect('s'), host.reconnect('s')])
  expect([first.state, second.state]).toEqual(['ready', 'ready'])
  await using binding = await host.bind()
  expect(textIn(await callTool(binding, 's/echo', { text: 'one' }))).toBe('one')
})

verifies('connection.024', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-host-'))
  try {
    const log = join(folder, 'pids.log')
    await using web = await startScriptedHttp()
    const stubborn = { ignoreTerm: true, ignoreStdinEnd: true, grandchildren: 1 }
    const { host } = await hostOf([
      scripted('polite', { log }),
      scripted('stubborn', { log, stubborn }),
      scripted('starting', { log, listing: 'silent' }),
      scripted('mute', { log, discover: 'silent', initialize: 'silent' }),
      http('web', web.url),
    ])
    await host.whenSettled({ servers: ['polite', 'stubborn', 'web'] })
    const held = await host.bind()
    const running = callTool(held, 'polite/silent')
    const beganAtMs = performance.now()
    await Promise.all([host.close(), host.close()])
    // Every step of the escalation is 2 s, and the servers go through it side by side.
    expect(performance.now() - beganAtMs).toBeLessThan(9_000)
    expect(['failed', 'unknown']).toContain((await running).kind)
    const pids = (await readFile(log, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { pid: number }).pid)
    expect(pids.length).toBeGreaterThanOrEqual(5)
    expect(pids.filter(isAlive)).toEqual([])
    expect(web.sessions.size).toBe(0)
    expect(new Set(host.statuses.map(({ state }) => state))).toEqual(new Set(['cancelled']))
    await expect(host.bind()).rejects.toMatchObject({ code: 'HOST_CLOSED' })
    await expect(host.reconnect('polite')).rejects.toMatchObject({ code: 'HOST_CLOSED' })
    await held[Symbol.asyncDispose]()
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('whoever waits for a start that is cut short by the end is told that it was cancelled', async () => {
  const { host, events } = await hostOf([scripted('s', { listing: 'silent' })])
  await stateOf(host, 's', 'starting')
  const settled = host.whenSettled()
  await host.close()
  await settled
  const states = events.flatMap((event) => (event.kind === 'server.state-changed' ? [event.status.state] : []))
  expect(states.at(-1)).toBe('cancelled')
})

test('dedicated connections end with the host, also those that are still being opened', async () => {
  const { host } = await hostOf(
    [scripted('s'), scripted('mute', { discover: 'silent', initialize: 'silent' }, { startupTimeoutMs: 20_000 })],
    {
      start: ['s'],
    },
  )
  await host.whenSettled()
  const open = await host.openDedicated('s', { capabilities: {} })
  const opening = host.openDedicated('mute', { capabilities: {} })
  const beganAtMs = performance.now()
  await Promise.all([host.close(), expect(opening).rejects.toMatchObject({ code: 'CANCELLED' })])
  expect(performance.now() - beganAtMs).toBeLessThan(10_000)
  await expect(open.request('ping')).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
  await expect(host.openDedicated('s', { capabilities: {} })).rejects.toMatchObject({ code: 'HOST_CLOSED' })
})

test('an abort of its signal closes the host', async () => {
  const abort = new AbortController()
  const { host } = await hostOf([scripted('s')], { signal: abort.signal })
  await host.whenSettled()
  const { pid } = statusOf(host, 's')
  abort.abort()
  await expect.poll(() => isAlive(pid), { timeout: 6_000 }).toBe(false)
  await host.close()
})

verifies('connection.025', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-host-'))
  try {
    const launch = JSON.stringify(scriptedStdio({ stubborn: { ignoreStdinEnd: true } }))
    const script = fileURLToPath(new URL('./host-child.ts', import.meta.url))
    const child = spawn(process.execPath, ['--conditions=@convoke/source', script, folder, launch], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const pid = await new Promise<number>((resolve) => {
      let text = ''
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        const match = /^READY (\d+)$/m.exec(text)
        if (match !== null) resolve(Number(match[1]))
      })
    })
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await gone
    expect(isAlive(pid)).toBe(true)
    const { host } = await hostOf([scripted('s')], { stateDirectory: folder })
    await using _ = host
    const { pid: reaped } = await eventOf(host, 'server.reaped')
    expect(reaped).toBe(pid)
    expect(isAlive(pid)).toBe(false)
    await host.whenSettled()
    // What is running now is noted, and is not touched by yet another host.
    const other = (await hostOf([], { stateDirectory: folder })).host
    await other.close()
    expect(statusOf(host, 's').state).toBe('ready')
    await host.close()
    expect(await readdir(join(folder, 'leases'))).toEqual([])
  } finally {
    await rm(folder, { recursive: true })
  }
})

verifies('connection.060', async () => {
  const { host, events } = await hostOf([scripted('s')])
  await using _ = host
  const order: string[] = []
  host.subscribe(() => {
    order.push('thrower')
    throw new Error('listener')
  })
  const stop = host.subscribe(({ kind }) => order.push(kind))
  await host.whenSettled()
  expect(order.slice(0, 2)).toEqual(['thrower', 'server.state-changed'])
  expect(events.length).toBeGreaterThan(0)
  const count = order.length
  stop()
  stop()
  await host.reconnect('s')
  expect(order.slice(count).every((entry) => entry === 'thrower')).toBe(true)
})

test('events tell the life of a server in order, from the first one on', async () => {
  const events: HostEvent[] = []
  const { host } = await hostOf([scripted('s')], { onEvent: (event) => events.push(event) })
  await using _ = host
  await host.whenSettled()
  await host.close()
  const states = events.flatMap((event) => (event.kind === 'server.state-changed' ? [event.status.state] : []))
  expect(states).toEqual(['starting', 'ready'])
})
