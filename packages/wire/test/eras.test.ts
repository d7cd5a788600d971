// From a command to a connection: which era, how many launches, how long, and what is left when it fails.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sdk2Stdio, verifies } from '@convoke/testkit'
import { Session, type SessionOptions, WireError } from '@convoke/wire'
import { expect, test } from 'vitest'
import { grandchildrenIn, isAlive, linesServer, type Rules, result, seenBy, textOf } from './lines.ts'

const MODERN = '"resultType":"complete"'
const DISCOVERED = `{"jsonrpc":"2.0","id":$ID,"result":{${MODERN},"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"1"}}}}`
const HELLO = '{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
const REFUSED = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"Method not found"}}'
const MODERN_SEEN = `{"jsonrpc":"2.0","id":$ID,"result":{${MODERN},"content":[{"type":"text","text":$SEEN}]}}`
const MODERN_ONLY: Rules = { 'server/discover': [DISCOVERED], initialize: [REFUSED], 'tools/call seen': [MODERN_SEEN] }

const open = (rules: Rules, options: Partial<SessionOptions> = {}): Promise<Session> =>
  Session.connect({ target: linesServer(rules), ...options })
const methods = async (session: Session): Promise<(string | undefined)[]> =>
  (await seenBy(session)).map(({ method }) => method)
const failureOf = async (promise: Promise<unknown>): Promise<WireError> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof WireError) return error
  throw new Error(`No WireError: ${error}`)
}

verifies('wire.010', async () => {
  await using session = await open({}, { clientInfo: { name: 'me', version: '2' }, capabilities: { roots: {} } })
  expect([session.era, session.verdict, session.launches]).toEqual([
    'legacy',
    { era: 'legacy', version: '2025-11-25' },
    1,
  ])
  expect(session.serverInfo).toEqual({ name: 'lines', version: '1' })
  const seen = await seenBy(session)
  expect(seen.map(({ method }) => method)).toEqual([
    'server/discover',
    'initialize',
    'notifications/initialized',
    'tools/call',
  ])
  expect(seen[1]?.params).toEqual({
    protocolVersion: '2025-11-25',
    clientInfo: { name: 'me', version: '2' },
    capabilities: { roots: {} },
  })
  expect(seen[3]?.params).toEqual({ name: 'seen', arguments: {} })
})

verifies('wire.011', async () => {
  await using session = await open(MODERN_ONLY, {
    clientInfo: { name: 'me', version: '2' },
    capabilities: { roots: {} },
  })
  expect([session.era, session.verdict, session.launches]).toEqual([
    'modern',
    { era: 'modern', version: '2026-07-28' },
    1,
  ])
  expect(session.serverInfo).toEqual({ name: 'm', version: '1' })
  const meta = (capabilities: object): object => ({
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'me', version: '2' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  })
  await session
    .callTool('echo', { text: '' }, { capabilities: { elicitation: {} }, onProgress: () => {} })
    .catch(() => {})
  const seen = await seenBy(session)
  expect(seen.map(({ method, params }) => [method, params?.['_meta']])).toEqual([
    ['server/discover', meta({ roots: {} })],
    ['tools/call', { ...meta({ elicitation: {} }), progressToken: seen[1]?.id }],
    ['tools/call', meta({ roots: {} })],
  ])
})

verifies('wire.012', async () => {
  const asked: (string | undefined)[] = []
  const rules: Rules = {
    'server/discover': [],
    'tools/call ask': ['{"jsonrpc":"2.0","id":1,"method":"roots/list"}'],
    // An answer to the old question that comes now changes nothing.
    answer: [`{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}`, result('asked', '$ID(ask)')],
  }
  await using session = await open(rules, {
    handlers: {
      'roots/list': (_params, { call }) => {
        asked.push(call?.method)
        return Promise.resolve({ roots: [] })
      },
    },
  })
  expect([session.era, session.launches]).toEqual(['legacy', 1])
  await expect(methods(session)).resolves.toEqual([
    'server/discover',
    'initialize',
    'notifications/initialized',
    'tools/call',
  ])
  // The question is not left among the calls in flight: this is the only one.
  expect(textOf(await session.callTool('ask'))).toBe('asked')
  expect(asked).toEqual(['tools/call'])
})

test('a server that boots for three seconds is connected on one launch', async () => {
  await using session = await open({ start: [{ waitMs: 2_500 }] })
  expect([session.era, session.launches]).toEqual(['legacy', 1])
})

verifies('wire.013', async () => {
  await using session = await open({ 'server/discover': [{ exit: 3 }] })
  expect([session.era, session.launches]).toEqual(['legacy', 2])
  expect(await methods(session)).toEqual(['initialize', 'notifications/initialized', 'tools/call'])
  // Asked and answered: what it dies of now has nothing to do with the question. Nor has what it dies of when it is not asked at all.
  const folder = await mkdtemp(join(tmpdir(), 'wire-'))
  const launches = async (rules: Rules, options: Partial<SessionOptions> = {}): Promise<[WireError, number]> => {
    const log = join(folder, String(Math.random()))
    const error = await failureOf(open({ ...rules, start: [{ log }, ...(rules['start'] ?? [])] }, options))
    return [error, (await readFile(log, 'utf8')).trim().split('\n').length]
  }
  const [answered, once] = await launches({ initialize: [{ exit: 4 }] })
  expect([answered.code, answered.details.exitCode, once]).toEqual(['closed', 4, 1])
  const [pinned, only] = await launches({ start: [{ stderr: 'no licence\n' }, { exit: 5 }] }, { era: 'legacy' })
  expect([pinned.message, only]).toEqual(['The server process ended with code 5 (last stderr line: no licence)', 1])
  const remembered: SessionOptions['remembered'] = { era: 'legacy', version: '2025-11-25' }
  expect((await launches({ start: [{ exit: 5 }] }, { remembered }))[1]).toBe(1)
  // It cannot be told from one that died of the question.
  expect((await launches({ start: [{ exit: 5 }] }))[1]).toBe(2)
  await rm(folder, { recursive: true })
})

verifies('wire.014', async () => {
  const late: Rules = { ...MODERN_ONLY, 'server/discover': [{ waitMs: 2_000 }, DISCOVERED] }
  const connected = await Promise.all([
    open(late),
    open({ ...late, initialize: [] }), // it ignores what it does not know
    open({ 'server/discover': [{ waitMs: 2_000 }, DISCOVERED], initialize: [{ waitMs: 2_000 }, HELLO] }), // both eras
  ])
  // Of both the last word counts, but the next start will not need it.
  expect(connected.map(({ era, launches, verdict }) => [era, launches, verdict.era])).toEqual([
    ['modern', 1, 'modern'],
    ['modern', 1, 'modern'],
    ['legacy', 1, 'modern'],
  ])
  expect(connected.map(({ protocolVersion }) => protocolVersion)).toEqual(['2026-07-28', '2026-07-28', '2025-11-25'])
  const verdict = connected[2]?.verdict
  const next = await open(
    { 'server/discover': [{ waitMs: 2_000 }, DISCOVERED], initialize: [{ waitMs: 2_000 }, HELLO] },
    verdict === undefined ? {} : { remembered: verdict },
  )
  expect([next.era, next.launches]).toEqual(['modern', 1])
  connected.push(next)
  await Promise.all(connected.map((session) => session.close()))
})

verifies('wire.015', async () => {
  await using legacy = await open({}, { remembered: { era: 'legacy', version: '2024-11-05' } })
  const [first] = await seenBy(legacy)
  expect([first?.method, first?.params?.['protocolVersion']]).toEqual(['initialize', '2024-11-05'])
  await using modern = await open(MODERN_ONLY, { remembered: { era: 'modern', version: '2026-07-28' } })
  expect((await methods(modern))[0]).toBe('server/discover')
  await using turnedModern = await open(MODERN_ONLY, { remembered: { era: 'legacy', version: '2025-11-25' } })
  expect([turnedModern.era, turnedModern.launches]).toEqual(['modern', 1])
  await using turnedLegacy = await open({}, { remembered: { era: 'modern', version: '2026-07-28' } })
  expect([turnedLegacy.era, turnedLegacy.launches]).toEqual(['legacy', 1])
})

test('a server configured as modern need not know discovery', async () => {
  await using session = await open(
    { 'server/discover': [REFUSED], 'tools/call seen': [MODERN_SEEN] },
    { era: 'modern' },
  )
  expect([session.era, session.serverInfo, textOf(await session.callTool('seen')).length > 0]).toEqual([
    'modern',
    {},
    true,
  ])
})

verifies(['wire.016', 'wire.017'], async () => {
  const rules: Rules = {
    start: [{ stderr: '\u001b[31mwaiting for a database\u001b[0m\n' }],
    'server/discover': [],
    initialize: [],
  }
  let failing: { error: unknown; atMs: number } | undefined
  const startedAtMs = performance.now()
  const error = await failureOf(
    open(rules, {
      startupTimeoutMs: 1_000,
      onFailing: (reason) => (failing = { error: reason, atMs: performance.now() }),
    }),
  )
  expect(error).toMatchObject({
    code: 'timed-out',
    details: { limit: 'startup', stderrTail: 'waiting for a database\n' },
  })
  expect(error.message).toBe('The server did not start within 1000 ms (last stderr line: waiting for a database)')
  expect(failing?.error).toBe(error)
  expect((failing?.atMs ?? Number.POSITIVE_INFINITY) - startedAtMs).toBeLessThan(1_800)
  // The second launch has only what the first left.
  const twice: Rules = { 'server/discover': [{ waitMs: 400 }, { exit: 1 }], initialize: [] }
  const secondAtMs = performance.now()
  const second = await failureOf(open(twice, { startupTimeoutMs: 1_200 }))
  expect(second.details.limit).toBe('startup')
  expect(performance.now() - secondAtMs).toBeLessThan(3_500)
  // A server that ends at its start, or closes its output, says what it said.
  for (const last of [{ exit: 2 }, { signal: 'SIGKILL' }]) {
    const dead = await failureOf(open({ start: [{ stderr: 'first\nno licence\n' }, last] }))
    expect(dead.message).toMatch(/^The server process ended .*\(last stderr line: no licence\)$/)
    expect(dead.details.stderrTail).toBe('first\nno licence\n')
  }
})

test('a stubborn server whose handshake fails is ended all the same', async () => {
  const rules: Rules = {
    stubborn: [],
    start: [{ grandchild: 'same-group' }],
    initialize: [REFUSED],
    'server/discover': [REFUSED],
  }
  const error = await failureOf(open(rules))
  expect(error).toMatchObject({ code: 'remote', details: { rpc: { code: -32601 } } })
  const pids = grandchildrenIn(error.details.stderrTail ?? '')
  expect([pids.length, pids.filter(isAlive)]).toEqual([1, []])
})

verifies('wire.018', async () => {
  const abortedBefore = await failureOf(open({}, { signal: AbortSignal.abort() }))
  expect(abortedBefore.code).toBe('cancelled')
  const codes = [0, 1, 5, 20, 80, 200].map(async (afterMs) => {
    const controller = new AbortController()
    setTimeout(() => controller.abort(), afterMs)
    const error = await failureOf(open({ 'server/discover': [], initialize: [] }, { signal: controller.signal }))
    return error.code
  })
  expect(new Set(await Promise.all(codes))).toEqual(new Set(['cancelled']))
  // Once it is connected the signal has done its work.
  const controller = new AbortController()
  await using session = await open({}, { signal: controller.signal })
  controller.abort()
  expect(textOf(await session.callTool('echo', { text: 'on' }))).toBe('on')
})

verifies('wire.019', async () => {
  const refuse = (code: number): Rules => ({
    initialize: [
      { stderr: 'offered\n' },
      `{"jsonrpc":"2.0","id":$ID,"error":{"code":${code},"message":"Unsupported protocol version"}}`,
    ],
  })
  for (const code of [-32602, -32022, -32000]) {
    const error = await failureOf(open(refuse(code), { era: 'legacy' }))
    expect([error.details.rpc?.code, error.details.stderrTail]).toEqual([code, 'offered\noffered\noffered\n'])
  }
  const other = await failureOf(open(refuse(-32603), { era: 'legacy' }))
  expect([other.details.rpc?.code, other.details.stderrTail]).toEqual([-32603, 'offered\n'])
  for (const version of ['2024-10-07', '1999-01-01', '2025-06-18', 'draft']) {
    const answer = `{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"${version}","capabilities":{}}}`
    await using session = await open({ initialize: [answer] }, { era: 'legacy' })
    expect(session.verdict).toEqual({ era: 'legacy', version })
  }
  for (const version of ['2026-07-28', '', 'a b', 'x'.repeat(65)]) {
    const answer = `{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"${version}","capabilities":{}}}`
    expect((await failureOf(open({ initialize: [answer] }, { era: 'legacy' }))).code, version).toBe('version-mismatch')
  }
})

verifies('wire.020', async () => {
  await using session = await open({
    initialize: ['{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18"}}'],
  })
  expect([session.serverInfo, session.capabilities, session.instructions]).toEqual([{}, {}, undefined])
  await using strange = await open({
    initialize: [
      '{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","serverInfo":"me","capabilities":[],"instructions":7}}',
    ],
  })
  expect([strange.serverInfo, strange.capabilities, strange.instructions]).toEqual([{}, {}, undefined])
})

test('a real modern server is found as such', async () => {
  await using session = await Session.connect({ target: sdk2Stdio({ era: 'modern' }) })
  expect([session.era, session.launches]).toEqual(['modern', 1])
})

test('nothing of a failed start is alive when its error arrives', async () => {
  const rules: Rules = {
    stubborn: [],
    start: [{ grandchild: 'own-session' }],
    'server/discover': [],
    initialize: ['{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2026-07-28"}}'],
  }
  const error = await failureOf(open(rules))
  const pids = grandchildrenIn(error.details.stderrTail ?? '')
  expect([error.code, pids.length, pids.filter(isAlive)]).toEqual(['version-mismatch', 1, []])
})
