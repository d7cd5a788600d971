// How servers start: side by side, within one budget, once, and with a reason when they do not.
import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHost } from '@convoke/host'
import { everythingStdio, scriptedStdio, sdk2Stdio, startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { eventOf, hostOf, http, inFolder, scripted, statusOf, stdio } from './support.ts'

/** How often a scripted server was started, by its own log. */
async function startsIn(log: string): Promise<number> {
  const text = await readFile(log, 'utf8').catch(() => '')
  return text.split('\n').filter((line) => line.includes('"start"')).length
}

verifies(['connection.001', 'connection.003', 'connection.004'], async () => {
  const { host } = await hostOf([
    scripted('silent', { listing: 'silent', stderr: ['warming up', 'still thinking'] }, { startupTimeoutMs: 5_000 }),
    scripted('mute', { discover: 'silent', initialize: 'silent' }, { startupTimeoutMs: 1_200 }),
    scripted('dies', { exitAtStart: { code: 7 }, stderr: ['no licence found'] }),
    scripted('refuses', { initialize: 'error' }),
    scripted('healthy'),
    stdio('missing', { kind: 'stdio', command: 'convoke-no-such-command', args: [] }),
    http('nobody', 'http://127.0.0.1:9/mcp'),
  ])
  await using _ = host
  const beganAtMs = performance.now()
  await host.whenSettled()
  // The slowest is the one that waits for its own budget; nobody adds to it.
  expect(performance.now() - beganAtMs).toBeLessThan(12_000)
  const reasons = Object.fromEntries(
    host.statuses.map(({ name, state, reason }) => [name, [state, reason?.code, reason?.message]]),
  )
  expect(reasons).toEqual({
    silent: [
      'failed',
      'STARTUP_TIMEOUT',
      'Server "silent" did not start within 5000 ms: no answer to tools/list (last stderr line: still thinking). A longer startupTimeoutMs gives it more time',
    ],
    mute: [
      'failed',
      'STARTUP_TIMEOUT',
      'Server "mute" did not start within 1200 ms: no answer to the handshake. A longer startupTimeoutMs gives it more time',
    ],
    dies: [
      'failed',
      'SERVER_EXITED',
      expect.stringMatching(
        /^Server "dies" ended with code 7 \(last stderr line: no licence found\)\. To see why, run /,
      ),
    ],
    refuses: ['failed', 'SERVER_ERROR', expect.stringMatching(/^Server "refuses": No initialization today/)],
    healthy: ['ready', undefined, undefined],
    missing: ['failed', 'COMMAND_NOT_FOUND', expect.stringMatching(/convoke-no-such-command.*on the PATH\?$/)],
    nobody: ['failed', 'SERVER_UNREACHABLE', expect.stringMatching(/127\.0\.0\.1:9.*running/)],
  })
  expect(statusOf(host, 'silent').stderrTail).toBe('warming up\nstill thinking')
  await using binding = await host.bind()
  expect(new Set(binding.tools.map(({ server }) => server))).toEqual(new Set(['healthy']))
})

verifies('connection.002', async () => {
  const { host } = await hostOf([scripted('late', { listDelayMs: 1_200 }), scripted('early')])
  await using _ = host
  await host.whenSettled({ servers: ['early'] })
  await using first = await host.bind()
  const servers = (tools: readonly { server: string }[]): string[] => [...new Set(tools.map(({ server }) => server))]
  expect(servers(first.tools)).toEqual(['early'])
  expect(statusOf(host, 'late').state).toBe('starting')
  expect(first.resolveTool('late/echo')).toMatchObject({ kind: 'server-not-ready', status: { state: 'starting' } })
  const echo = first.resolveTool('early/echo')
  expect(echo.kind === 'found' && (await first.call(echo.tool, { text: 'now' })).kind).toBe('ok')
  await host.whenSettled()
  expect(servers(first.tools)).toEqual(['early'])
  await using second = await host.bind()
  expect(servers(second.tools)).toEqual(['early', 'late'])
})

test('waiting for servers ends with its limit, and with its signal', async () => {
  const { host } = await hostOf([scripted('late', { listing: 'silent' })])
  await using _ = host
  await host.whenSettled({ waitMs: 50 })
  expect(statusOf(host, 'late').state).toBe('starting')
  await expect(host.whenSettled({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'CANCELLED' })
  await expect(host.whenSettled({ servers: ['nobody'] })).rejects.toMatchObject({ code: 'SERVER_UNKNOWN' })
})

verifies('connection.005', async () => {
  await inFolder(async (folder) => {
    const logs = ['legacy', 'modern', 'both', 'quiet'].map((name) => join(folder, `${name}.log`))
    const [legacy = '', modern = '', both = '', quiet = ''] = logs
    const { host } = await hostOf([
      scripted('legacy', { log: legacy }),
      scripted('modern', { log: modern, era: 'modern' }),
      scripted('both', { log: both, era: 'both' }),
      scripted('quiet', { log: quiet, discover: 'silent' }),
      stdio('everything', everythingStdio()),
      stdio('sdk2', sdk2Stdio()),
    ])
    await using _ = host
    await host.whenSettled()
    // A server of both eras that boots slowly may be met in either: both questions lie in its pipe by then.
    const either = expect.stringMatching(/^(legacy|modern)$/)
    expect(host.statuses.map(({ name, state, era }) => [name, state, era])).toEqual([
      ['legacy', 'ready', 'legacy'],
      ['modern', 'ready', 'modern'],
      ['both', 'ready', either],
      ['quiet', 'ready', 'legacy'],
      ['everything', 'ready', 'legacy'],
      ['sdk2', 'ready', either],
    ])
    expect(await Promise.all(logs.map(startsIn))).toEqual([1, 1, 1, 1])
  })
})

verifies('connection.006', async () => {
  await inFolder(async (folder) => {
    const path = join(folder, 'server.sh')
    const become = (script: object): Promise<void> => {
      const { command, args } = scriptedStdio(script)
      const words = [command, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`)
      return writeFile(path, `#!/bin/sh\nexec ${words.join(' ')}\n`, { mode: 0o755 })
    }
    const definition = stdio(
      'one',
      { kind: 'stdio', command: path, args: [] },
      { startup: 'eager', startupTimeoutMs: 10_000 },
    )
    const cacheDirectory = join(folder, 'cache')
    const eraNow = async (): Promise<string | undefined> => {
      const { host } = await hostOf([definition], { cacheDirectory })
      await using _ = host
      await host.whenSettled()
      return statusOf(host, 'one').era ?? statusOf(host, 'one').reason?.code
    }
    const remembered = async (): Promise<unknown[]> => {
      const names = await readdir(join(cacheDirectory, 'launches'))
      return Promise.all(
        names.map(async (name) => JSON.parse(await readFile(join(cacheDirectory, 'launches', name), 'utf8'))),
      )
    }
    await become({ era: 'legacy' })
    expect(await eraNow()).toBe('legacy')
    expect(await remembered()).toEqual([{ version: 1, era: 'legacy', spoken: '2025-11-25' }])
    // A server that dies of a question for its era is not asked again.
    await become({ era: 'legacy', discover: 'exit' })
    expect(await eraNow()).toBe('legacy')
    await become({ era: 'modern' })
    expect(await eraNow()).toBe('modern')
    expect(await remembered()).toEqual([{ version: 1, era: 'modern', spoken: '2026-07-28' }])
    // What contradicts the memory without saying what it is instead is forgotten.
    await become({ initialize: 'error' })
    expect(await eraNow()).toBe('SERVER_ERROR')
    expect(await remembered()).toEqual([])
  })
})

test('an unreadable memory is no memory', async () => {
  await inFolder(async (folder) => {
    const { host } = await hostOf([scripted('one')], { cacheDirectory: join(folder, 'not', 'there') })
    await using _ = host
    await host.whenSettled()
    expect(statusOf(host, 'one').state).toBe('ready')
  })
})

/** `npx`, as far as this host can tell: a program of that name that starts the scripted server. */
async function fakeNpx(folder: string, script: object, body = ''): Promise<string> {
  const path = join(folder, 'npx')
  const { command, args } = scriptedStdio(script)
  const words = [command, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`)
  await writeFile(path, `#!/bin/sh\n${body}\nexec ${words.join(' ')}\n`, { mode: 0o755 })
  return path
}

verifies(['connection.007', 'connection.008'], async () => {
  await inFolder(async (folder) => {
    const command = await fakeNpx(folder, { initializeDelayMs: 1_500 })
    const definition = stdio(
      'runner',
      { kind: 'stdio', command, args: [] },
      { startup: 'eager', startupTimeoutMs: 700, installTimeoutMs: 20_000 },
    )
    const cacheDirectory = join(folder, 'cache')
    {
      const { host, events } = await hostOf([definition], { cacheDirectory })
      await using _ = host
      await host.whenSettled()
      // Slower than its startup budget, but it may have been installing.
      expect(statusOf(host, 'runner').state).toBe('ready')
      const states = events.flatMap((event) => (event.kind === 'server.state-changed' ? [event.status.state] : []))
      expect(states).toContain('installing')
    }
    {
      const { host, events } = await hostOf([definition], { cacheDirectory })
      await using _ = host
      await host.whenSettled()
      // It is known to be installed: the same delay is now too long.
      expect(statusOf(host, 'runner').reason?.code).toBe('STARTUP_TIMEOUT')
      const states = events.flatMap((event) => (event.kind === 'server.state-changed' ? [event.status.state] : []))
      expect(states).not.toContain('installing')
    }
  })
})

test('a runner that talks and then hangs has only the ordinary clock left; one that never ends has its own limit', async () => {
  await inFolder(async (folder) => {
    const talks = await fakeNpx(folder, {}, 'echo "installed it"; sleep 30')
    const { host, events } = await hostOf([
      stdio('talks', { kind: 'stdio', command: talks, args: [] }, { startupTimeoutMs: 600, installTimeoutMs: 20_000 }),
      stdio(
        'hangs',
        { kind: 'stdio', command: await fakeNpx(await mkdtemp(join(folder, 'b')), {}, 'sleep 30'), args: [] },
        { installTimeoutMs: 900 },
      ),
    ])
    await using _ = host
    const installed = eventOf(
      host,
      'server.state-changed',
      ({ status }) => status.name === 'talks' && status.state === 'starting',
    )
    await installed
    await host.whenSettled()
    expect(statusOf(host, 'talks').reason?.code).toBe('STARTUP_TIMEOUT')
    expect(statusOf(host, 'hangs').reason).toEqual({
      code: 'INSTALL_TIMEOUT',
      message:
        'Server "hangs": "npx" did not finish installing within 900 ms (installTimeoutMs). Install it beforehand, or give it more time with a longer installTimeoutMs',
    })
    expect(events.some(({ kind }) => kind === 'server.noise')).toBe(true)
  })
})

verifies('connection.009', async () => {
  await using flaky = await startScriptedHttp({
    failures: [
      { method: 'initialize', status: 503, times: 2 },
      { method: 'tools/list', status: 502, times: 2 },
    ],
  })
  await using down = await startScriptedHttp({ failures: [{ method: 'server/discover', status: 503 }] })
  await using refusing = await startScriptedHttp({ failures: [{ method: 'initialize', status: 404 }] })
  const { host } = await hostOf([http('flaky', flaky.url), http('down', down.url), http('refusing', refusing.url)])
  await using _ = host
  await host.whenSettled()
  const count = ({ requests }: typeof down, method: string): number =>
    requests.filter(({ rpc }) => rpc === method).length
  expect(host.statuses.map(({ name, state, reason }) => [name, state, reason?.code])).toEqual([
    ['flaky', 'ready', undefined],
    ['down', 'failed', 'HTTP_STATUS'],
    ['refusing', 'failed', 'HTTP_STATUS'],
  ])
  expect([count(flaky, 'initialize'), count(flaky, 'tools/list')]).toEqual([3, 3])
  expect(count(down, 'server/discover')).toBe(3)
  expect(count(refusing, 'initialize')).toBe(1)
})

verifies('connection.010', async () => {
  const { host } = await hostOf([scripted('anonymous', { omitServerInfo: true })])
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 'anonymous')).toMatchObject({ state: 'ready', serverInfo: { name: 'anonymous', version: '' } })
})

verifies('connection.011', async () => {
  const banner = ['hello', '\u001b[32mloading 50%\u001b[0m', '{not json', '', 'x'.repeat(5_000)]
  const { host, events } = await hostOf([scripted('noisy', { banner, lineEnd: '\r\n' })])
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 'noisy')).toMatchObject({ state: 'ready', noiseCount: 4 })
  const noises = events.filter(({ kind }) => kind === 'server.noise')
  expect(noises).toEqual([{ kind: 'server.noise', server: 'noisy', text: 'hello' }])
})

verifies('connection.012', async () => {
  await inFolder(async (folder) => {
    const log = join(folder, 'starts.log')
    const problem = {
      severity: 'error',
      code: 'CONFIG_VARIABLE_MISSING',
      message: 'convoke.json:4:7: server "broken": the variable TOKEN in env.TOKEN is not set',
      file: 'convoke.json',
      line: 4,
      column: 7,
    } as const
    const { host } = await hostOf([
      scripted('off', { log }, { enabled: false }),
      scripted('broken', { log }, { problem }),
      scripted('asks', { log }, { problem: { ...problem, code: 'CONFIG_INPUT_NEEDED', message: 'needs an input' } }),
      scripted('warned', {}, { problem: { ...problem, severity: 'warning' } }),
    ])
    await using _ = host
    await host.whenSettled({ servers: ['off', 'broken', 'asks', 'warned'] })
    expect(host.statuses.map(({ name, state, reason }) => [name, state, reason])).toEqual([
      [
        'off',
        'disabled',
        {
          code: 'SERVER_DISABLED',
          message: 'Server "off" is disabled in its configuration. Remove "enabled": false to use it',
        },
      ],
      ['broken', 'disabled', { code: 'CONFIG_PROBLEM', message: problem.message }],
      ['asks', 'needs-input', { code: 'CONFIG_PROBLEM', message: 'needs an input' }],
      ['warned', 'ready', undefined],
    ])
    expect(await startsIn(log)).toBe(0)
    await expect(host.openDedicated('off', { capabilities: {} })).rejects.toMatchObject({ code: 'SERVER_DISABLED' })
    expect((await host.reconnect('broken')).state).toBe('disabled')
  })
})

verifies('connection.013', async () => {
  await inFolder(async (folder) => {
    const log = join(folder, 'starts.log')
    const { host } = await hostOf([scripted('sleeps', { log }), scripted('wakes')], { start: ['wakes'] })
    await using _ = host
    await host.whenSettled()
    expect(host.statuses.map(({ state }) => state)).toEqual(['dormant', 'ready'])
    await using before = await host.bind()
    expect(before.resolveTool('sleeps/echo')).toMatchObject({ kind: 'server-not-ready', status: { state: 'dormant' } })
    expect(await startsIn(log)).toBe(0)
    await host.whenSettled({ servers: ['sleeps'] })
    expect(statusOf(host, 'sleeps').state).toBe('ready')
    expect(await startsIn(log)).toBe(1)
  })
})

test('options that contradict each other are refused by name', async () => {
  const one = scripted('one')
  await expect(createHost({ definitions: [one, one] })).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
  await expect(createHost({ definitions: [one], start: ['two'] })).rejects.toThrow(/"two"/)
  await expect(createHost({ definitions: [one], nameCharsMax: 10 })).rejects.toThrow(/24 to 128/)
})

test('a host that is aborted before it begins starts nothing', async () => {
  const { host } = await hostOf([scripted('one')], { signal: AbortSignal.abort() })
  await using _ = host
  await expect(host.bind()).rejects.toMatchObject({ code: 'HOST_CLOSED' })
})
