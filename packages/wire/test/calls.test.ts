// Requests over a real pipe: cancellation, limits, progress, ids, noise, oversized answers.
import { verifies } from '@convoke/testkit'
import { WireError } from '@convoke/wire'
import { expect, test } from 'vitest'
import { connect, result, seenBy, textOf, until } from './lines.ts'

const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}'
const failureOf = async (promise: Promise<unknown>): Promise<WireError> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof WireError) return error
  throw new Error(`No WireError: ${error}`)
}

verifies('wire.030', async () => {
  await using session = await connect({
    'tools/call hang': [],
    // The answer comes after all, right when it is cancelled.
    'notifications/cancelled': [result('late', '$REQUEST')],
  })
  const controller = new AbortController()
  const call = session.callTool('hang', {}, { signal: controller.signal })
  await until(async () => (await seenBy(session)).some(({ key }) => key === 'tools/call hang'))
  controller.abort()
  controller.abort()
  const error = await failureOf(call)
  expect(error).toMatchObject({ code: 'cancelled', details: { sent: true } })
  const seen = await seenBy(session)
  const hung = seen.find(({ key }) => key === 'tools/call hang')
  const cancellations = seen.filter(({ method }) => method === 'notifications/cancelled')
  expect(cancellations.map(({ params }) => params?.['requestId'])).toEqual([hung?.id])
  expect(textOf(await session.callTool('echo', { text: 'on' }))).toBe('on')
  expect(session.noiseCount).toBe(0)
})

verifies('wire.031', async () => {
  await using session = await connect({ 'tools/call slow': [{ waitMs: 30 }, result('done')] })
  const controller = new AbortController()
  let cancel: ((reason: string) => void) | undefined
  await session.callTool('slow', {}, { signal: controller.signal, onStarted: (how) => (cancel = how) })
  controller.abort()
  cancel?.('too late')
  expect((await seenBy(session)).map(({ method }) => method)).not.toContain('notifications/cancelled')
  const aborting = new AbortController()
  const silent = connect(
    { initialize: [{ stderr: 'ready\n' }], 'notifications/cancelled': [{ stderr: 'CANCELLED\n' }] },
    { signal: aborting.signal },
  )
  setTimeout(() => aborting.abort(), 300)
  const error = await failureOf(silent)
  expect(error.code).toBe('cancelled')
  expect(error.details.stderrTail ?? '').not.toContain('CANCELLED')
})

verifies('wire.032', async () => {
  const steps = Array.from({ length: 6 }, () => [{ waitMs: 80 }, PROGRESS]).flat()
  await using session = await connect({ 'tools/call work': [...steps, result('done')], 'tools/call hang': [] })
  let count = 0
  const done = await session.callTool('work', {}, { idleTimeoutMs: 300, onProgress: () => count++ })
  expect([textOf(done), count]).toEqual(['done', 6])
  const total = await failureOf(session.callTool('work', {}, { idleTimeoutMs: 300, totalTimeoutMs: 200 }))
  expect(total).toMatchObject({ code: 'timed-out', details: { limit: 'total', sent: true } })
  expect(total.message).toBe('"tools/call" did not finish within 200 ms')
  const idle = await failureOf(session.callTool('hang', {}, { idleTimeoutMs: 60 }))
  expect(idle).toMatchObject({ code: 'timed-out', details: { limit: 'idle', sent: true } })
  // Each told the server once, and the server goes on.
  expect((await seenBy(session)).filter(({ method }) => method === 'notifications/cancelled')).toHaveLength(2)
})

verifies('wire.034', async () => {
  // Three right before the answer, two hundred times, as SDK clients lose them; and one after it.
  await using session = await connect({ 'tools/call burst': [PROGRESS, PROGRESS, PROGRESS, result('done'), PROGRESS] })
  const counts: number[] = []
  for (let call = 0; call < 200; call++) {
    let count = 0
    await session.callTool('burst', {}, { onProgress: () => count++ })
    counts.push(count)
  }
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(600)
  expect(new Set(counts)).toEqual(new Set([3]))
})

test('a throwing progress listener fails nothing', async () => {
  await using session = await connect({ 'tools/call burst': [PROGRESS, result('done')] })
  const onProgress = (): void => {
    throw new Error('mine')
  }
  expect(textOf(await session.callTool('burst', {}, { onProgress }))).toBe('done')
})

verifies('wire.035', async () => {
  await using session = await connect({
    'tools/call first': [],
    'tools/call second': [
      result('nobody asked', '4242'),
      result('not a number of ours', '"1e0"'),
      result('nor this', '0'),
      result('2', '$ID'),
      result('again', '$ID'),
      result('1', '$ID(first)'),
      result('again', '$ID(first)'),
    ],
    'tools/call text-id': ['{"jsonrpc":"2.0","id":"$ID","result":{"content":[{"type":"text","text":"as text"}]}}'],
  })
  const answers = await Promise.all([session.callTool('first'), session.callTool('second')])
  expect(answers.map(textOf)).toEqual(['1', '2'])
  expect(textOf(await session.callTool('text-id'))).toBe('as text')
  expect(textOf(await session.callTool('echo', { text: 'on' }))).toBe('on')
})

test('fifty callers get their own answers', async () => {
  await using session = await connect()
  const texts = Array.from({ length: 500 }, (_, index) => `number ${index} ü😀`)
  const answers = await Promise.all(texts.map((text) => session.callTool('echo', { text })))
  expect(answers.map(textOf)).toEqual(texts)
})

verifies('wire.036', async () => {
  await using session = await connect({ 'tools/call hang': [] })
  const before = new AbortController()
  const takenBack = session.callTool('hang', { text: 'never seen' }, { signal: before.signal })
  before.abort()
  expect(await failureOf(takenBack)).toMatchObject({ code: 'cancelled', details: { sent: false } })
  const aborted = AbortSignal.abort()
  expect(await failureOf(session.callTool('hang', {}, { signal: aborted }))).toMatchObject({ details: { sent: false } })
  // Neither the call nor its cancellation has been seen.
  const methods = (await seenBy(session)).map(({ key, method }) => key ?? method)
  expect(methods).toEqual(['initialize', 'notifications/initialized', 'tools/call seen'])
  const sent = failureOf(session.callTool('hang'))
  await seenBy(session)
  await session.close()
  expect(await sent).toMatchObject({ code: 'closed', details: { sent: true } })
  expect(await failureOf(session.callTool('echo'))).toMatchObject({ code: 'closed', details: { sent: false } })
})

test('what waits behind a blocked pipe has not been sent', async () => {
  await using session = await connect({ 'tools/call stop': [{ stopReading: true }, result('stopped')] })
  await session.callTool('stop')
  const big = 'x'.repeat(4_000_000)
  const first = failureOf(session.callTool('echo', { text: big }))
  await new Promise((resolve) => setImmediate(resolve))
  const second = failureOf(session.callTool('echo', { text: 'behind' }))
  await new Promise((resolve) => setImmediate(resolve))
  const closing = session.close()
  expect(await first).toMatchObject({ code: 'closed', details: { sent: true } })
  expect(await second).toMatchObject({ code: 'closed', details: { sent: false } })
  await closing
})

verifies('wire.037', async () => {
  await using session = await connect({
    'tools/call hang': [],
    'tools/call die': [{ stderr: 'cannot go on\n' }, { exit: 7 }],
  })
  const calls = [session.callTool('hang'), session.callTool('die'), session.list('tools')].map(failureOf)
  for (const call of calls) {
    const error = await call
    expect(error).toMatchObject({ code: 'closed', details: { exitCode: 7, sent: true } })
    expect(error.message).toBe('The server process ended with code 7 (last stderr line: cannot go on)')
  }
  expect(await session.closed).toEqual({
    cause: 'process-exited',
    exitCode: 7,
    message: 'The server process ended with code 7 (last stderr line: cannot go on)',
  })
  const later = await failureOf(session.callTool('echo'))
  expect(later).toMatchObject({ code: 'closed', details: { sent: false } })
})

test('a server killed by a signal says which', async () => {
  await using session = await connect({ 'tools/call die': [{ signal: 'SIGKILL' }] })
  await failureOf(session.callTool('die'))
  expect(await session.closed).toMatchObject({ cause: 'process-exited', signal: 'SIGKILL' })
})

for (const pipe of ['stdin', 'stdout'] as const)
  test(`a server that closes its ${pipe} and lives on has lost the connection`, async () => {
    await using session = await connect({ 'tools/call close': [{ close: pipe }], alive: [] })
    const call = failureOf(session.callTool('close'))
    if (pipe === 'stdin') {
      await until(async () => {
        session.notify('notifications/nothing', { text: 'x'.repeat(10_000) })
        return (await Promise.race([session.closed, Promise.resolve()])) !== undefined
      })
    }
    expect(await call).toMatchObject({ code: 'closed', message: 'The server closed its pipes' })
    expect(await session.closed).toMatchObject({ cause: 'connection-lost' })
  })

verifies('wire.038', async () => {
  await using session = await connect({
    'tools/call own': [{ waitMs: 50 }, result('own')],
    'tools/call foreign': [
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID(own),"progress":5}}',
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":6}}',
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":null}}',
      result('foreign'),
    ],
  })
  const progress: unknown[] = []
  const own = session.callTool('own')
  await session.request(
    'tools/call',
    { name: 'foreign', _meta: { progressToken: 1, traceparent: '00-1' } },
    { onProgress: (one) => progress.push(one) },
  )
  await own
  expect(progress).toEqual([])
  const call = (await seenBy(session)).find(({ key }) => key === 'tools/call foreign')
  expect(call?.params?.['_meta']).toEqual({ traceparent: '00-1', progressToken: call?.id })
})

verifies('wire.039', async () => {
  await using session = await connect({
    'tools/call refuse': [
      '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32055,"message":"No \\"x\\"","data":{"why":[1]}}}',
    ],
    'tools/call odd-error': ['{"jsonrpc":"2.0","id":$ID,"error":"just text"}'],
    'tools/call null-result': ['{"jsonrpc":"2.0","id":$ID,"result":null}'],
    'tools/call list-result': ['{"jsonrpc":"2.0","id":$ID,"result":[]}'],
    'tools/call nothing': ['{"jsonrpc":"2.0","id":$ID}'],
    'tools/call bad-content': ['{"jsonrpc":"2.0","id":$ID,"result":{"content":"text"}}'],
    'tools/call no-content': ['{"jsonrpc":"2.0","id":$ID,"result":{"structuredContent":{"a":1}}}'],
    'tools/call strange-content': [
      '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"hologram","x":1}],"isError":true}}',
    ],
  })
  expect(await failureOf(session.callTool('refuse'))).toMatchObject({
    code: 'remote',
    message: 'No "x"',
    details: { rpc: { code: -32055, message: 'No "x"', data: { why: [1] } }, sent: true },
  })
  expect(await failureOf(session.callTool('odd-error'))).toMatchObject({ code: 'remote', message: 'just text' })
  for (const name of ['null-result', 'list-result', 'nothing', 'bad-content'])
    expect(await failureOf(session.callTool(name)), name).toMatchObject({ code: 'malformed' })
  expect(await session.callTool('no-content')).toEqual({ content: [], structuredContent: { a: 1 } })
  expect(await session.callTool('strange-content')).toEqual({ content: [{ type: 'hologram', x: 1 }], isError: true })
})

verifies('wire.005', async () => {
  const padded = (before: string, after: string): readonly [{ before: string; pad: number; after: string }] => [
    { before, pad: 3_000_000, after },
  ]
  await using session = await connect(
    {
      'tools/call id-first': padded('{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"', '"}]}}'),
      'tools/call id-last': padded('{"result":{"content":[{"type":"text","text":"', '"}]},"jsonrpc":"2.0","id":$ID}'),
      'tools/call no-id': padded('', ''),
    },
    { messageBytesMax: 100_000 },
  )
  for (const name of ['id-first', 'id-last']) {
    const [big, small] = await Promise.allSettled([session.callTool(name), session.callTool('echo', { text: 'fine' })])
    expect(big).toMatchObject({ status: 'rejected', reason: { code: 'too-large' } })
    expect(small).toMatchObject({ status: 'fulfilled' })
  }
  // Whose it is cannot be read, but only one call is waiting.
  expect(await failureOf(session.callTool('no-id'))).toMatchObject({ code: 'too-large' })
  expect(textOf(await session.callTool('echo', { text: 'on' }))).toBe('on')
})

verifies('wire.006', async () => {
  await using session = await connect({
    'tools/call brackets': [
      { text: '{"jsonrpc":"2.0","id":$ID,"result":{"content":[' },
      { repeat: '[],', times: 2_100_000 },
      '{}]}}',
    ],
  })
  const before = process.memoryUsage().heapUsed
  expect(await failureOf(session.callTool('brackets'))).toMatchObject({ code: 'too-large' })
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(60_000_000)
  expect(textOf(await session.callTool('echo', { text: 'on' }))).toBe('on')
})

verifies('wire.007', async () => {
  await using session = await connect({
    'tools/call crlf': ['{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"crlf"}]}}\r'],
    'tools/call split': [
      { text: '{"jsonrpc":"2.0","id":$ID,"re' },
      { waitMs: 20 },
      'sult":{"content":[{"type":"text","text":"größe"}]}}\r\n\r\n',
    ],
    'tools/call last': [{ text: result('last words') }, { exit: 0 }],
  })
  expect(textOf(await session.callTool('crlf'))).toBe('crlf')
  expect(textOf(await session.callTool('split'))).toBe('größe')
  expect(session.noiseCount).toBe(0)
  expect(textOf(await session.callTool('last'))).toBe('last words')
})

verifies(['wire.008', 'security.007'], async () => {
  const noise: string[] = []
  await using session = await connect(
    {
      start: [
        '\u001b[31mhello\u001b[0m \u0007world',
        '',
        '{not json',
        '{"some":"json"}',
        '42',
        { line: '[1,2]', times: 2 },
      ],
      'tools/call noisy': ['progress: 10%', { before: '', pad: 5_000_000, after: '' }, result('done'), 'bye'],
    },
    { onNoise: (text) => noise.push(text) },
  )
  expect(textOf(await session.callTool('noisy'))).toBe('done')
  expect(textOf(await session.callTool('echo', { text: 'on' }))).toBe('on')
  expect(noise).toEqual(['hello world'])
  // Six lines and two batches of two at the start, three in the call; blank lines are none.
  expect([session.noiseCount, session.firstNoise]).toEqual([11, 'hello world'])
})

test('raw answers are the bytes of the result or error, and fall back to a parsed copy', async () => {
  await using session = await connect({
    'tools/call exact': ['{"result": {"n":9223372036854775808,"resultType":"complete"} ,"jsonrpc":"2.0","id":$ID}'],
    'tools/call doubled': ['{"jsonrpc":"2.0","id":$ID,"result":{"a":1},"id":$ID}'],
    'tools/call refuse': ['{"jsonrpc":"2.0","id":"$ID","error":{"code":-1,"message":"m"}}'],
    'tools/call odd-error': ['{"jsonrpc":"2.0","id":$ID,"error":"just text"}'],
  })
  const raw = async (name: string): Promise<unknown[]> => {
    const { kind, body, typed } = await session.requestRaw('tools/call', { name })
    return [kind, body.toString(), typed]
  }
  expect(await raw('exact')).toEqual(['result', '{"n":9223372036854775808,"resultType":"complete"}', true])
  expect(await raw('doubled')).toEqual(['result', '{"a":1}', false])
  expect(await raw('refuse')).toEqual(['error', '{"code":-1,"message":"m"}', false])
  expect(await raw('odd-error')).toEqual(['error', '{"code":0,"message":"just text"}', false])
})

verifies('security.006', async () => {
  await using session = await connect({
    'tools/call special': [
      '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"then":{"x":1},"toJSON":1,"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}',
      '{"jsonrpc":"2.0","id":77,"method":"constructor","params":{"__proto__":{"polluted":1}}}',
      '{"jsonrpc":"2.0","id":78,"method":"__proto__"}',
    ],
    answer: [],
  })
  const answer = await session.callTool('special')
  expect(Object.keys(answer)).toEqual(['content', 'then', 'toJSON', '__proto__', 'constructor'])
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  await until(async () => (await seenBy(session)).filter(({ method }) => method === undefined).length === 2)
  const answers = (await seenBy(session)).filter(({ method }) => method === undefined)
  expect(answers).toMatchObject([
    { id: 77, error: { code: -32601 } },
    { id: 78, error: { code: -32601 } },
  ])
})
