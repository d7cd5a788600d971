// Starting and ending processes. Linux looks into /proc; what other systems can do is in `process-table.test.ts`.
import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { verifies } from '@convoke/testkit'
import { nodePlatform, reapLeftovers, runCommand, Session, spawnProcess, WireError } from '@convoke/wire'
import { expect, test } from 'vitest'
import { connect, grandchildrenIn, isAlive, linesServer, result, textOf, until } from './lines.ts'

const HOST = fileURLToPath(new URL('./host.ts', import.meta.url))
const failureOf = async (promise: Promise<unknown>): Promise<WireError> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof WireError) return error
  throw new Error(`No WireError: ${error}`)
}
interface Folder extends AsyncDisposable {
  path: string
}
const folder = async (): Promise<Folder> => {
  const path = await mkdtemp(join(tmpdir(), 'wire-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}
/** A host process of its own, which starts servers and tells their numbers. */
async function startHost(
  leaseDirectory: string,
  mode: 'wait' | 'exit' | 'throw',
): Promise<{ pid: number; servers: number[]; exited: Promise<void> }> {
  const child = spawn(process.execPath, ['--conditions=@convoke/source', HOST, leaseDirectory, mode], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  let text = ''
  child.stdout.on('data', (part: Buffer) => (text += part.toString()))
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()))
  await Promise.race([until(() => text.includes('\n')), exited])
  if (!text.includes('\n')) throw new Error('The host ended before it was ready')
  return { pid: child.pid as number, servers: JSON.parse(text) as number[], exited }
}

verifies('wire.060', async () => {
  // A polite one is gone at once; a stubborn one with its grandchild after both signals.
  const polite = await connect()
  const politeAtMs = performance.now()
  await polite.close()
  expect(performance.now() - politeAtMs).toBeLessThan(1_500)
  expect(isAlive(polite.pid as number)).toBe(false)
  const stubborn = await connect({ stubborn: [], start: [{ grandchild: 'same-group' }] })
  await until(() => grandchildrenIn(stubborn.stderrTail).length === 1)
  const [grandchild] = grandchildrenIn(stubborn.stderrTail)
  const stubbornAtMs = performance.now()
  const closings = [stubborn.close(), stubborn.close()]
  await Promise.all(closings)
  expect(performance.now() - stubbornAtMs).toBeLessThan(5_000)
  expect([isAlive(stubborn.pid as number), isAlive(grandchild as number)]).toEqual([false, false])
  await stubborn.close()
  expect(await stubborn.closed).toEqual({ cause: 'local', message: 'The session was closed' })
})

verifies('wire.070', async () => {
  // Ends at SIGTERM, and never at the end of its input.
  const deaf = 'setInterval(() => {}, 1000); console.log("up")'
  const secondsToClose = async (closeGraceMs?: number): Promise<number> => {
    const grace = closeGraceMs === undefined ? {} : { closeGraceMs }
    const child = await spawnProcess(nodePlatform, { command: process.execPath, args: ['-e', deaf], ...grace })
    await new Promise<void>((resolve) => child.onOutput(() => resolve()))
    const closedAtMs = performance.now()
    await child.close()
    expect(isAlive(child.pid)).toBe(false)
    return (performance.now() - closedAtMs) / 1_000
  }
  expect(await secondsToClose(100)).toBeLessThan(1.9)
  expect(await secondsToClose()).toBeGreaterThanOrEqual(1.99)
})

test('behind a wrapper the server itself is ended too', async () => {
  const { command, args = [] } = linesServer({ stubborn: [] })
  const quoted = [command, ...args].map((one) => `'${one}'`).join(' ')
  const session = await Session.connect({
    target: { kind: 'stdio', command: 'sh', args: ['-c', `exec 3<&0; ${quoted} <&3 & wait`] },
    era: 'legacy',
  })
  const self = JSON.parse(textOf(await session.callTool('env'))) as { pid: number }
  expect(self.pid).not.toBe(session.pid)
  await session.close()
  expect([isAlive(session.pid as number), isAlive(self.pid)]).toEqual([false, false])
})

verifies('wire.061', async () => {
  const session = await connect({ start: [{ grandchild: 'own-session' }] })
  await until(() => grandchildrenIn(session.stderrTail).length === 1)
  const [grandchild] = grandchildrenIn(session.stderrTail)
  expect(isAlive(grandchild as number)).toBe(true)
  await session.close()
  expect(isAlive(grandchild as number)).toBe(false)
})

verifies('wire.067', async () => {
  const session = await connect({
    start: [{ grandchild: 'same-group' }],
    'tools/call die': [{ stderr: 'out of luck\n' }, { signal: 'SIGABRT' }],
  })
  await until(() => grandchildrenIn(session.stderrTail).length === 1)
  const [grandchild] = grandchildrenIn(session.stderrTail)
  const error = await failureOf(session.callTool('die'))
  expect(error.message).toBe('The server process ended by SIGABRT (last stderr line: out of luck)')
  expect(error.details).toMatchObject({ signal: 'SIGABRT', sent: true })
  // Nobody has closed it.
  await until(() => !isAlive(grandchild as number), 6_000)
  await session.close()
})

test('a server whose grandchild holds the pipes open has ended all the same', async () => {
  const session = await Session.connect({
    target: { kind: 'stdio', command: process.execPath, args: ['-e', HOLDER] },
    era: 'legacy',
  })
  const startedAtMs = performance.now()
  const outcome = await session.closed
  expect(outcome).toMatchObject({ cause: 'process-exited', exitCode: 3 })
  expect(performance.now() - startedAtMs).toBeLessThan(2_000)
  await session.close()
})
const HOLDER = `
require('node:child_process').spawn('sleep', ['300'], { stdio: ['ignore', 'inherit', 'inherit'] })
process.stdin.once('data', (line) => {
  const { id } = JSON.parse(line)
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25' } }) + '\\n', () => setTimeout(() => process.exit(3), 100))
})`

verifies('wire.062', async () => {
  for (const mode of ['exit', 'throw'] as const) {
    await using state = await folder()
    const host = await startHost(state.path, mode)
    await host.exited
    await until(() => host.servers.every((pid) => !isAlive(pid)), 2_000)
    expect(host.servers).toHaveLength(4)
  }
})

verifies(['wire.063', 'security.005'], async () => {
  await using state = await folder()
  const host = await startHost(state.path, 'wait')
  const [file] = await readdir(state.path)
  const lease = await readFile(join(state.path, String(file)), 'utf8')
  expect(lease).not.toMatch(/canary/)
  expect(lease).toContain('stdio-lines.mjs')
  // Another living host next to it.
  const other = await startHost(state.path, 'wait')
  process.kill(host.pid, 'SIGKILL')
  await host.exited
  expect(host.servers.filter(isAlive).length).toBeGreaterThan(0)
  const reaped = await reapLeftovers(state.path)
  expect(host.servers.filter(isAlive)).toEqual([])
  expect(other.servers.every(isAlive)).toBe(true)
  expect(reaped.length).toBeGreaterThan(0)
  for (const { pid } of reaped) expect(host.servers).toContain(pid)
  expect(reaped.some(({ command }) => command.includes('stdio-lines.mjs'))).toBe(true)
  expect(await readdir(state.path)).toHaveLength(1)
  expect(await reapLeftovers(state.path)).toEqual([])
  process.kill(other.pid, 'SIGKILL')
  await other.exited
  await reapLeftovers(state.path)
  expect(other.servers.filter(isAlive)).toEqual([])
  expect(await readdir(state.path)).toEqual([])
})

verifies('wire.064', async () => {
  await using state = await folder()
  await using elsewhere = await folder()
  const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60000)'], { stdio: 'ignore', detached: true })
  const pid = bystander.pid as number
  await until(() => nodePlatform.processes.facts(pid) !== undefined)
  const facts = nodePlatform.processes.facts(pid)
  const name = (index: number): string => `host-2222222-${String(index).padStart(32, '0')}.json`
  const record = {
    version: 1,
    place: nodePlatform.processes.place(),
    host: '0'.repeat(32),
    pid: 2_222_222,
    startedAt: '1',
    children: [{ lease: `${'0'.repeat(32)}-1`, pid, startedAt: facts?.startedAt, command: 'node' }],
  }
  const write = (index: number, value: unknown): Promise<void> =>
    writeFile(join(state.path, name(index)), typeof value === 'string' ? value : JSON.stringify(value), { mode: 0o600 })
  await write(1, record) // right number, right start, but not our lease in its environment
  await write(2, { ...record, children: [{ ...record.children[0], startedAt: '1' }] }) // the number was given away
  await write(3, { ...record, pid, startedAt: facts?.startedAt }) // its host lives
  await write(4, { ...record, place: 'another boot' })
  await write(5, '{"version":1,')
  await write(6, {
    ...record,
    children: [{ ...record.children[0], pid: -1 }, { pid: 0 }, { pid: 1, lease: '', startedAt: '', command: '' }, null],
  })
  await write(7, 'x'.repeat(300_000))
  await writeFile(join(elsewhere.path, 'target.json'), JSON.stringify(record), { mode: 0o600 })
  await symlink(join(elsewhere.path, 'target.json'), join(state.path, name(8)))
  await write(9, record)
  await chmod(join(state.path, name(9)), 0o666) // anybody may have written it
  await writeFile(join(state.path, 'notes.txt'), 'keep me')
  const old = new Date(Date.now() - 40 * 24 * 3_600_000)
  await write(10, { ...record, place: 'an old boot' })
  await utimes(join(state.path, name(10)), old, old)
  expect(await reapLeftovers(state.path)).toEqual([])
  expect(isAlive(pid)).toBe(true)
  expect((await readdir(state.path)).sort()).toEqual(
    [name(3), name(4), name(5), name(7), name(8), name(9), 'notes.txt'].sort(),
  )
  expect(await readdir(elsewhere.path)).toEqual(['target.json'])
  expect(await reapLeftovers(join(state.path, 'not-there'))).toEqual([])
  await symlink(state.path, join(elsewhere.path, 'link'))
  expect(await reapLeftovers(join(elsewhere.path, 'link'))).toEqual([])
  bystander.kill('SIGKILL')
  await new Promise((resolve) => bystander.once('close', resolve))
})

test('where environments cannot be read, the recorded processes and their groups are ended, by number and start time', async () => {
  await using state = await folder()
  const blind = {
    ...nodePlatform,
    processes: { ...nodePlatform.processes, readsEnvironments: false, variable: () => undefined, carrying: () => [] },
  }
  const code =
    'require("node:child_process").spawn("sleep", ["300"], { stdio: "ignore" }); setInterval(() => {}, 60000)'
  const leftover = spawn(process.execPath, ['-e', code], { stdio: 'ignore', detached: true })
  const gone = new Promise((resolve) => leftover.once('close', resolve))
  const pid = leftover.pid as number
  const members = (): number[] =>
    nodePlatform.processes
      .all()
      .filter(({ groupId, zombie }) => groupId === pid && !zombie)
      .map((one) => one.pid)
  await until(() => members().length === 2)
  const startedAt = nodePlatform.processes.facts(pid)?.startedAt
  const write = (index: number, child: object): Promise<void> => {
    const host = String(index).padStart(32, '0')
    const record = {
      version: 1,
      place: nodePlatform.processes.place(),
      host,
      pid: 2_222_222,
      startedAt: '1',
      children: [child],
    }
    return writeFile(join(state.path, `host-2222222-${host}.json`), JSON.stringify(record), { mode: 0o600 })
  }
  await write(1, { lease: 'x-1', pid, startedAt: `${startedAt}0`, command: 'node' })
  expect(await reapLeftovers(state.path, blind)).toEqual([])
  expect(members()).toHaveLength(2)
  await write(2, { lease: 'x-1', pid, startedAt, command: 'node' })
  expect((await reapLeftovers(state.path, blind)).map((one) => one.pid).sort()).toHaveLength(2)
  expect(members()).toEqual([])
  await gone
})

test('the lease file goes with the last process', async () => {
  await using state = await folder()
  const leaseDirectory = join(state.path, 'leases')
  const first = await Session.connect({ target: linesServer({}, { leaseDirectory }) })
  const second = await Session.connect({ target: linesServer({}, { leaseDirectory }) })
  expect(await readdir(leaseDirectory)).toHaveLength(1)
  await first.close()
  expect(await readdir(leaseDirectory)).toHaveLength(1)
  await second.close()
  expect(await readdir(leaseDirectory)).toEqual([])
  // A place where nothing can be written stops no server.
  const blocked = await Session.connect({ target: linesServer({}, { leaseDirectory: '/proc/nowhere' }) })
  await blocked.close()
})

verifies('wire.065', async () => {
  const line = `${'\u001b[1m'}0123456789abcdef${'\u001b[0m'}\u0000\r\n`
  await using session = await connect({
    'tools/call flood': [
      { stderr: line, times: 5_000 },
      { stderr: `\u001b]0;title\u0007last \u202e line\n\n` },
      result('done'),
    ],
  })
  expect(textOf(await session.callTool('flood'))).toBe('done')
  await until(() => session.stderrTail.includes('last'))
  expect(session.stderrTail.length).toBeLessThanOrEqual(16 * 1024)
  expect(session.stderrTail.length).toBeGreaterThan(8 * 1024)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  expect(session.stderrTail).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/)
  expect(session.stderrTail).toMatch(/0123456789abcdef\n0123456789abcdef\nlast {2}line\n\n$/)
})

verifies('wire.066', async () => {
  await using state = await folder()
  const open = (command: string, target: object = {}): Promise<WireError> =>
    failureOf(Session.connect({ target: { kind: 'stdio', command, ...target } }))
  const missing = await open('no-such-command-here', { env: { PATH: '/nowhere:/neither' } })
  expect([missing.code, missing.message, missing.details.sent]).toEqual([
    'spawn-failed',
    'Could not start "no-such-command-here": it is in none of the folders of PATH (/nowhere:/neither)',
    false,
  ])
  expect((await open('no-such-command --flag')).message).toContain('if it holds arguments, they belong into "args"')
  expect((await open('/no/such/file')).message).toContain('there is no such file, or its interpreter is missing')
  expect((await open(process.execPath, { cwd: join(state.path, 'gone') })).message).toContain(
    `its working directory "${join(state.path, 'gone')}" does not exist`,
  )
  await writeFile(join(state.path, 'plain.txt'), 'text')
  expect((await open(join(state.path, 'plain.txt'))).message).toContain('it may not be executed')
  expect((await open(process.execPath, { cwd: join(state.path, 'plain.txt') })).message).toContain('working directory')
  expect((await open('node\0x')).code).toBe('spawn-failed')
  expect((await open('')).code).toBe('spawn-failed')
  expect((await open(process.execPath, { args: ['x'.repeat(3_000_000)] })).message).toMatch(/E2BIG/)
})

verifies('wire.068', async () => {
  const node = (code: string, options: object = {}): ReturnType<typeof runCommand> =>
    runCommand({ command: process.execPath, args: ['-e', code], ...options })
  const good = await node('process.stdout.write("ü"); console.error("note"); process.exitCode = 3')
  expect([good.stdout.toString(), good.stderrTail, good.exitCode]).toEqual(['ü', 'note\n', 3])
  // Its input is at its end.
  expect((await node('process.stdin.on("data", () => {}).on("end", () => console.log("end"))')).stdout.toString()).toBe(
    'end\n',
  )
  const big = await failureOf(node('process.stdout.write("x".repeat(70000)); setInterval(() => {}, 1000)'))
  expect([big.code, big.message.includes('65536 bytes')]).toEqual(['too-large', true])
  const late = await failureOf(node('process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)', { timeoutMs: 200 }))
  expect([late.code, late.details.limit]).toEqual(['timed-out', 'total'])
  const controller = new AbortController()
  setTimeout(() => controller.abort(), 100)
  expect((await failureOf(node('setInterval(() => {}, 1000)', { signal: controller.signal }))).code).toBe('cancelled')
  expect((await failureOf(node('', { signal: AbortSignal.abort() }))).code).toBe('cancelled')
  expect((await failureOf(runCommand({ command: '/no/such' }))).code).toBe('spawn-failed')
  // What it leaves behind goes with it.
  const left = await runCommand({ command: 'sh', args: ['-c', 'sleep 300 >/dev/null 2>&1 & echo $!'] })
  expect(isAlive(Number(left.stdout.toString()))).toBe(false)
  const secret = await failureOf(node('process.stdout.write("canary".repeat(20000))'))
  expect(JSON.stringify([secret.message, secret.details])).not.toContain('canary')
})

verifies('security.001', async () => {
  const args = [
    '$(touch x)',
    '`id`',
    '; ls',
    '"',
    "'",
    '\\',
    'a b',
    '',
    '*',
    '%PATH%',
    '\n',
    'ü😀',
    '--',
    '-rf',
    '&& exit',
  ]
  const { command, args: own = [] } = linesServer()
  await using session = await Session.connect({
    target: { kind: 'stdio', command, args: [own[0] as string, ...args, own[1] as string] },
    era: 'legacy',
  })
  const self = JSON.parse(textOf(await session.callTool('env'))) as { argv: string[] }
  expect(self.argv).toEqual(args)
})

verifies(['security.002', 'security.004'], async () => {
  const canaries = [
    'AWS_SECRET_ACCESS_KEY',
    'GITHUB_TOKEN',
    'CONVOKE_LEASE',
    'CONVOKE_TOKEN',
    'OPENAI_API_KEY',
    'SSH_AUTH_SOCK',
    'NODE_OPTIONS',
    'npm_config__auth',
    'LD_PRELOAD',
    'HTTPS_PROXY',
    'NAMED',
  ]
  const host: Record<string, string | undefined> = {
    ...process.env,
    ...Object.fromEntries(canaries.map((name) => [name, `canary-${name}`])),
    LANG: 'C.UTF-8',
  }
  const platform = { ...nodePlatform, env: host }
  const environmentOf = async (target: object): Promise<Record<string, string>> => {
    await using session = await Session.connect({ target: linesServer({}, target), platform, era: 'legacy' })
    return (JSON.parse(textOf(await session.callTool('env'))) as { env: Record<string, string> }).env
  }
  const plain = await environmentOf({})
  const allowed = [
    'HOME',
    'LOGNAME',
    'PATH',
    'SHELL',
    'USER',
    'LANG',
    'LC_ALL',
    'TERM',
    'TMPDIR',
    'TZ',
    '__CF_USER_TEXT_ENCODING',
  ]
  expect(Object.keys(plain).filter((name) => !allowed.includes(name))).toEqual(['CONVOKE_LEASE'])
  expect(plain['CONVOKE_LEASE']).toMatch(/^[0-9a-f]{32}-\d+$/)
  expect(JSON.stringify(plain)).not.toContain('canary')
  expect(plain['PATH']).toBe(host['PATH'])
  const named = await environmentOf({
    inheritEnv: ['NAMED', 'NOT_SET', 'TERM'],
    env: { TOKEN: 'mine', LANG: 'literal' },
  })
  expect([named['NAMED'], named['NOT_SET'], named['TOKEN'], named['LANG']]).toEqual([
    'canary-NAMED',
    undefined,
    'mine',
    'literal',
  ])
  // The next one has nothing of it.
  const next = await environmentOf({})
  expect([next['TOKEN'], next['NAMED'], next['LANG']]).toEqual([undefined, undefined, 'C.UTF-8'])
  expect(next['CONVOKE_LEASE']).not.toBe(plain['CONVOKE_LEASE'])
})

verifies('security.003', async () => {
  // A host that was itself given more descriptors than it should pass on.
  const code = `
    const { Session } = await import('@convoke/wire')
    const list = 'process.stdin.on("end", () => process.exit()).resume(); const { readdirSync, readlinkSync } = require("node:fs"); const at = (fd) => { try { return readlinkSync("/proc/self/fd/" + fd) } catch { return "" } }; console.error(JSON.stringify(readdirSync("/proc/self/fd").map((fd) => [fd, at(fd)])))'
    const { spawnProcess, nodePlatform } = await import('@convoke/wire')
    const child = await spawnProcess(nodePlatform, { command: process.execPath, args: ['-e', list] })
    while (!child.stderr.text.includes('\\n')) await new Promise((resolve) => setTimeout(resolve, 10))
    await child.close()
    console.log(child.stderr.text)`
  const file = fileURLToPath(new URL('../src/index.ts', import.meta.url))
  const shell = spawn(
    'sh',
    [
      '-c',
      `exec 7<"$0" 9<"$0" "$1" --conditions=@convoke/source --input-type=module -e "$2"`,
      file,
      process.execPath,
      code,
    ],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      cwd: fileURLToPath(new URL('..', import.meta.url)),
    },
  )
  let text = ''
  shell.stdout.on('data', (part: Buffer) => (text += part.toString()))
  await new Promise((resolve) => shell.once('close', resolve))
  const descriptors = JSON.parse(text) as [string, string][]
  expect(descriptors.map(([fd]) => fd)).toEqual(expect.arrayContaining(['0', '1', '2']))
  expect(descriptors.filter(([, target]) => target.includes('index.ts'))).toEqual([])
  // Node's own pipes and event descriptors are its own; files and sockets of the host are not there.
  expect(descriptors.filter(([fd, target]) => Number(fd) > 2 && /^(\/(?!proc|dev)|socket)/.test(target))).toEqual([])
})

test('a spawned process reports its end and can be closed at any time', async () => {
  const child = await spawnProcess(nodePlatform, { command: process.execPath, args: ['-e', 'process.exit(4)'] })
  child.onOutput(() => {})
  expect(await child.ended).toEqual({ exitCode: 4 })
  await child.gone
  await child.close()
  await child.close()
})
