// Reading what clients send: exactly, within bounds, and only once.
import { verifies } from '@convoke/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isExactNumber } from '../src/server/exact-number.ts'
import { DEFAULT_LIMITS } from '../src/server/limits.ts'
import { readBody } from '../src/server/message.ts'
import { scanStructure } from '../src/server/structure.ts'
import { type Answer, openSession, rpc, send, serve } from './server-fixture.ts'

type Json = Record<string, unknown>
const codeOf = ({ status, json }: Answer): unknown[] => [status, (json['error'] as Json | undefined)?.['code']]
const read = (text: string | Buffer): ReturnType<typeof readBody> =>
  readBody(Buffer.from(text as string), DEFAULT_LIMITS)
const scan = (text: string, limits = { depthMax: 64, membersMax: 100_000 }): ReturnType<typeof scanStructure> =>
  scanStructure(Buffer.from(text), limits)
const envelope = (args: string): string =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${args}}}`

verifies('security.078', async () => {
  await using served = await serve()
  const session = await openSession(served.port)
  const echoed = async (args: string): Promise<string> => {
    const answer = await session.post(envelope(args))
    return ((answer.json['result'] as Json)['content'] as { text: string }[])[0]?.text as string
  }
  const same = [
    '{"n":1e400}',
    '{"n":-0}',
    '{"n":-0.0}',
    '{"n":9223372036854775808}',
    '{"n":9223372036854775807}',
    '{"n":9007199254740993}',
    '{"n":0.1234567890123456789}',
    `{"n":${'7'.repeat(100_000)}}`,
    '{"n":1e-400}',
    '{"a":[1,{"b":9007199254740993}],"c":"9007199254740993"}',
    '{"s":"\\ud800"}',
    '{"s":"\\udc00x\\ud800"}',
    '{"__proto__":9007199254740993}',
  ]
  for (const args of same) expect(await echoed(args), args.slice(0, 60)).toBe(args)
  const equal: [string, string][] = [
    ['{"n":1.0}', '{"n":1}'],
    ['{"n":1E2}', '{"n":100}'],
    ['{"n":0.30000000000000004}', '{"n":0.30000000000000004}'],
    ['{"n":1152921504606846976}', '{"n":1152921504606846976}'],
    ['{"s":"\\u0061"}', '{"s":"a"}'],
  ]
  for (const [args, expected] of equal) expect(await echoed(args)).toBe(expected)
})

verifies('security.079', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const session = await openSession(port)
  const refused = [
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"fail"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","n\\u0061me":"fail"}}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"echo"}}',
    '{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"echo"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"},"params":{"name":"fail"}}',
    '\ufeff{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list",}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list"}{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list"} x',
    "{'jsonrpc':'2.0','id':1,'method':'tools/list'}",
    '// a comment\n{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1,"Method":"tools/list"}',
    '{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
    '{"id":1,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1,"method":7}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["echo"]}',
    '{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":[1],"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1}',
    '"tools/list"',
    'null',
    '',
    '{',
  ]
  for (const body of refused) {
    const answer = await session.post(body)
    expect(answer.status, body).toBe(400)
    expect([-32700, -32600, -32602], body).toContain((answer.json['error'] as Json)['code'])
  }
  expect(
    codeOf(
      await send(port, {
        headers: session.headers,
        body: Buffer.concat([
          Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping","x":"'),
          Buffer.from([0xff]),
          Buffer.from('"}'),
        ]),
      }),
    ),
  ).toEqual([400, -32700])
  expect(recorder.calls).toEqual([])
  // Deeper down names are the application's: the last one counts there, as everywhere.
  expect((await session.post(envelope('{"a":1,"a":2}'))).status).toBe(200)
})

verifies('security.082', async () => {
  await using served = await serve()
  const session = await openSession(served.port)
  const args =
    '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"then":"x","toJSON":1,"hasOwnProperty":2}'
  const answer = await session.post(envelope(args))
  expect(((answer.json['result'] as Json)['content'] as { text: string }[])[0]?.text).toBe(args)
  expect(({} as Json)['polluted']).toBeUndefined()
  for (const name of ['__proto__', 'constructor', 'toString', 'then'])
    expect(codeOf(await session.call(name)), name).toEqual([200, -32602])
  const meta = await session.post(
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{"__proto__":{"progressToken":1}}}}`,
  )
  expect(meta.status).toBe(200)
  expect((await session.post(rpc('tools/call', { name: 'echo', _meta: 'none' }))).status).toBe(200)
})

verifies('security.077', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const session = await openSession(port)
  const ids = [0, '0', 1, '1', -1, '', 'a"b\\c', 'ü\u2028', 2 ** 53 - 1, 'x'.repeat(256)]
  const answers = ids.map((id) => session.call('hold', { key: `${typeof id} ${id}` }, id))
  await recorder.until(() => recorder.held.size === ids.length)
  for (const id of ids) expect(codeOf(await session.call('echo', {}, id)), String(id)).toEqual([400, -32600])
  for (const id of [...ids].reverse()) recorder.held.get(`${typeof id} ${id}`)?.(`${typeof id} ${id}`)
  for (const [at, answer] of (await Promise.all(answers)).entries())
    expect([answer.json['id'], ((answer.json['result'] as Json)['content'] as { text: string }[])[0]?.text]).toEqual([
      ids[at],
      `${typeof ids[at]} ${ids[at]}`,
    ])
  const float = await session.post('{"jsonrpc":"2.0","id":1.0,"method":"ping"}')
  expect(float.json['id']).toBe(1)
  expect(codeOf(await session.call('echo', {}, 'x'.repeat(257)))).toEqual([400, -32600])
  expect(codeOf(await session.call('echo', {}, 'x'.repeat(1_000_000)))).toEqual([400, -32600])
  expect((await session.call('echo', {}, 0)).status).toBe(200) // answered ids are free again
})

describe('numbers', () => {
  test.each([
    ['0', true],
    ['-1', true],
    ['1.50', true],
    ['100e-2', true],
    ['123456789012345', true],
    ['0.1', true],
    ['5e-324', true],
    ['1.7976931348623157e308', true],
    ['-0', false],
    ['-0.00', false],
    ['1e309', false],
    ['4e-324', false],
    ['9007199254740993', false],
    ['0.10000000000000001', false],
  ])('%s is exact: %s', (source, exact) => {
    expect(isExactNumber(source)).toBe(exact)
  })

  test('every double is exact in its own spelling', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => isExactNumber(JSON.stringify(value))),
      { numRuns: 10_000 },
    )
  })
})

describe('structure', () => {
  test.each([
    ['[[1]]', 2, 9, undefined],
    ['[[[1]]]', 2, 9, 'it is nested deeper than 2 levels'],
    ['[1,2,3]', 9, 3, undefined],
    ['[1,2,3,4]', 9, 3, 'it has more than 3 members'],
    ['{"a":"[[[[","b":",,,,"}', 1, 3, undefined],
    ['{"a":"\\"[[["}', 1, 3, undefined],
    ['{"a":1,"\\u0061":2}', 9, 9, 'the name "a" stands twice in one object'],
    ['[{"a":1,"a":2}]', 9, 9, 'the name "a" stands twice in one object'],
    ['{"a":{"b":1,"b":1}}', 9, 9, 'the name "b" stands twice in one object'],
    ['{"a":{"b":{"c":1,"c":1}}}', 9, 9, undefined],
    ['{"a":[{"c":1,"c":1}]}', 9, 9, undefined],
    ['{"a":{"a":1},"b":{"a":1}}', 9, 9, undefined],
    ['{"a":"b","b":"a"}', 9, 9, undefined],
  ])('%s', (text, depthMax, membersMax, fault) => {
    expect(scan(text, { depthMax, membersMax }).fault).toBe(fault)
  })

  test('agrees with the parser on what any JSON is, and never trips over broken text', () => {
    const limits = { ...DEFAULT_LIMITS, membersMax: 10_000 }
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), fc.nat(400), (value, cut) => {
        const message = { jsonrpc: '2.0', id: 1, method: 'm', params: { value } }
        const text = JSON.stringify(message)
        const body = readBody(Buffer.from(text), limits)
        expect(body).toEqual({
          kind: 'one',
          message: { kind: 'request', id: 1, method: 'm', params: JSON.parse(JSON.stringify({ value })) },
        })
        const broken = readBody(Buffer.from(text.slice(0, Math.min(cut, text.length - 1))), limits)
        expect(broken).toMatchObject({ kind: 'one', message: { kind: 'invalid' } })
      }),
      { numRuns: 5_000 },
    )
  })

  test('long strings end where they end', () => {
    for (const length of [0, 40, 46, 47, 48, 49, 50, 51, 100, 5_000])
      for (const tail of ['', '\\\\', '\\"', '\\\\\\"', 'ü', '"'.replace('"', '\\u0022')]) {
        const text = JSON.stringify({ jsonrpc: '2.0', method: 'm', params: { a: 'x'.repeat(length) } }).replace(
          'x"',
          `x${tail}"`,
        )
        expect(read(text), `${length} ${tail}`).toEqual({
          kind: 'one',
          message: { kind: 'notification', method: 'm', params: (JSON.parse(text) as Json)['params'] },
        })
      }
  })
})
