import { verifies } from '@convoke/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Envelope, recoverId, scanEnvelope } from '../src/envelope.ts'
import { callIdInJson, callIdOf } from '../src/message-id.ts'
import { FUZZ_RUNS, FUZZ_TIMEOUT_MS } from './lines.ts'

const scan = (text: string | Buffer): Envelope | undefined => {
  const bytes = Buffer.from(text)
  // As in a read buffer: something comes before and behind, and it would complete what is cut.
  const within = Buffer.concat([Buffer.from('"{'), bytes, Buffer.from('}"}]\n')])
  const found = scanEnvelope(within, 2, 2 + bytes.length)
  return found === undefined ? undefined : { ...found, start: found.start - 2, end: found.end - 2 }
}

/** What a plain parser makes of it: undefined when the bytes are not exactly one answer that may be passed on. */
function judgeSlowly(text: string): { id: unknown; kind: string; payload: unknown; typed: boolean } | undefined {
  let message: Record<string, unknown>
  try {
    message = JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return undefined
  const keys = Object.keys(message)
  if (keys.some((key) => !['jsonrpc', 'id', 'result', 'error'].includes(key)) || !keys.includes('id')) return undefined
  const payloads = keys.filter((key) => key === 'result' || key === 'error')
  const [kind] = payloads
  if (kind === undefined || payloads.length !== 1) return undefined
  const payload = message[kind]
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return undefined
  return { id: message['id'], kind, payload, typed: kind === 'result' && 'resultType' in payload }
}

const json = fc.jsonValue({ maxDepth: 5, noUnicodeString: false } as object)
const odd = fc.constantFrom('"}],{"', '\\', '\\"', 'id', 'result', 'resultType', '\u2028ü😀', '\n\t', '__proto__', '')
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    json,
    odd,
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(odd, tie('any'), { maxKeys: 4 }),
  ),
})).any
const answer = fc
  .record({
    id: fc.oneof(fc.nat(), fc.string()),
    payload: fc.dictionary(fc.oneof(odd, fc.string()), value, { maxKeys: 5 }),
    kind: fc.constantFrom('result', 'error'),
    order: fc.nat(5),
    indent: fc.constantFrom(0, 2, 7),
    around: fc.tuple(fc.constantFrom('', ' ', '\r', '\t\t'), fc.constantFrom('', ' ', '\r')),
  })
  .map(({ id, payload, kind, order, indent, around }) => {
    const members: [string, unknown][] = [
      ['jsonrpc', '2.0'],
      ['id', id],
      [kind, payload],
    ]
    const sorted = [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ][order] as number[]
    const text = JSON.stringify(
      Object.fromEntries(sorted.map((index) => members[index] as [string, unknown])),
      null,
      indent,
    )
    return `${around[0]}${text}${around[1]}`
  })

verifies(
  'wire.003',
  () => {
    fc.assert(
      fc.property(answer, (text) => {
        const found = scan(text)
        const judged = judgeSlowly(text)
        const escaped =
          judged !== undefined &&
          Object.keys(judged.payload as object).some((key) => JSON.stringify(key).includes('\\'))
        expect(found === undefined).toBe(escaped)
        if (found === undefined) return
        const bytes = Buffer.from(text)
        expect(JSON.parse(found.id)).toEqual(judged?.id)
        expect({ kind: found.kind, typed: found.typed }).toEqual({ kind: judged?.kind, typed: judged?.typed })
        expect(JSON.parse(bytes.toString('utf8', found.start, found.end))).toEqual(judged?.payload)
      }),
      { numRuns: FUZZ_RUNS },
    )
  },
  FUZZ_TIMEOUT_MS,
)

/** A few changes to a good answer: bytes taken out, put in, or changed. */
const damage = fc.array(
  fc.record({
    at: fc.nat(400),
    take: fc.nat(3),
    put: fc.constantFrom(
      '',
      '"',
      '\\',
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '0',
      '-',
      '.',
      'e',
      'tru',
      'null',
      '\u0001',
      '\\u12',
      ' ',
      'x',
      '"id":3,',
      ',"result":{}',
    ),
  }),
  { minLength: 1, maxLength: 4 },
)

test(
  'a damaged answer passes only if a parser takes it, and then as the same',
  () => {
    fc.assert(
      fc.property(answer, damage, (good, changes) => {
        let text = good
        for (const { at, take, put } of changes) {
          const place = at % (text.length + 1)
          text = text.slice(0, place) + put + text.slice(place + take)
        }
        const found = scan(text)
        if (found === undefined) return
        const judged = judgeSlowly(Buffer.from(text).toString('utf8'))
        expect(judged).toBeDefined()
        expect(JSON.parse(Buffer.from(text).toString('utf8', found.start, found.end))).toEqual(judged?.payload)
        expect({ id: JSON.parse(found.id) as unknown, kind: found.kind, typed: found.typed }).toEqual({
          id: judged?.id,
          kind: judged?.kind,
          typed: judged?.typed,
        })
      }),
      { numRuns: FUZZ_RUNS * 2 },
    )
  },
  FUZZ_TIMEOUT_MS,
)

test(
  'random text over the alphabet of JSON never passes where a parser refuses',
  () => {
    const token = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '"id"',
      '"result"',
      '"error"',
      '1',
      '-',
      '0',
      '.',
      'e',
      'true',
      'false',
      'null',
      '\\',
      '\\u00',
      ' ',
      '\n',
      '{}',
      '"a"',
    )
    fc.assert(
      fc.property(fc.array(token, { maxLength: 24 }), (tokens) => {
        const text = `{"id":1,"result":{${tokens.join('')}`
        if (scan(text) !== undefined) expect(judgeSlowly(text)).toBeDefined()
      }),
      { numRuns: FUZZ_RUNS * 2 },
    )
  },
  FUZZ_TIMEOUT_MS,
)

verifies('wire.004', () => {
  const refused = [
    '{"jsonrpc":"2.0","id":1,"result":{},"id":2}',
    '{"jsonrpc":"2.0","id":1,"result":{},"result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
    '{"id":1,"result":{"result\\u0054ype":"input_required"}}',
    '{"id":1,"re\\u0073ult":{}}',
    '{"id":1,"result":{}}}',
    '{"id":1,"result":{}} {"id":2,"result":{}}',
    '{"id":1,"result":{"a":"}',
    '{"id":1,"result":{"a":[}}',
    '{"id":1,"result":{"a":[}]}}',
    '{"id":1,"result":{"a":01}}',
    '{"id":1,"result":{"a":1.}}',
    '{"id":1,"result":{"a":+1}}',
    '{"id":1,"result":{"a":.5}}',
    '{"id":1,"result":{"a":1e}}',
    '{"id":1,"result":{"a":NaN}}',
    '{"id":1,"result":{"a":tru}}',
    '{"id":1,"result":{"a":"\\x"}}',
    '{"id":1,"result":{"a":"\\u12G4"}}',
    '{"id":1,"result":{"a":"\u0000"}}',
    '{"id":1,"result":{"a":1,}}',
    '{"id":1,"result":{,}}',
    '{"id":1,"result":{a:1}}',
    "{'id':1,'result':{}}",
    '{"id":1,"result":{}/**/}',
    '\ufeff{"id":1,"result":{}}',
    '{"id":1,"result":[]}',
    '{"id":1,"result":null}',
    '{"id":1,"method":"x","params":{}}',
    '{"id":1}',
    '{"result":{}}',
    '[]',
    '',
    '{',
    'x{"id":1,"result":{}}',
  ]
  for (const text of refused) expect(scan(text), text).toBeUndefined()
  const deep = (depth: number): string => `{"id":1,"result":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`
  expect(scan(deep(999))).toBeDefined()
  expect(scan(deep(1_001))).toBeUndefined()
  for (const bytes of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
    const text = Buffer.concat([Buffer.from('{"id":1,"result":{"a":"'), Buffer.from(bytes), Buffer.from('"}}')])
    expect(scan(text), text.toString('hex')).toBeUndefined()
  }
})

test('numbers that a parser would change pass untouched', () => {
  const text = '{"id":7,"result":{"a":9223372036854775808,"b":1e400,"c":-0,"d":0.10}}'
  const found = scan(text)
  expect(text.slice(found?.start, found?.end)).toBe('{"a":9223372036854775808,"b":1e400,"c":-0,"d":0.10}')
})

test('the id of a message over the cap is read at either edge, and a forged one is not', () => {
  const recover = (head: string, tail: string): string | undefined => recoverId(Buffer.from(head), Buffer.from(tail))
  expect(recover('{"jsonrpc":"2.0","id":7,"result":{"x', 'x"}}')).toBe('7')
  expect(recover('{"id":"a7","jsonrpc":"2.0","result":{"x', 'x"}}')).toBe('"a7"')
  expect(recover('{"result":{"id":3,', 'x"},"jsonrpc":"2.0","id":"9"}')).toBe('"9"')
  expect(recover('{"result":{"id":3,', 'x"},"id":9,"jsonrpc":"2.0"}\r')).toBe('9')
  expect(recover('{"result":{"id":3,', '"x"}}')).toBeUndefined()
  expect(recover('{"result":{"content":"', '\\",\\"id\\":9}"}}')).toBeUndefined()
  expect(recover('{"jsonrpc":"2.0","id":7,"result":{"x', 'x"},"id":8}')).toBeUndefined()
  expect(recover('{"jsonrpc":"2.0","id":7,"result":{"x', 'x"},"id":7}')).toBe('7')
})

test(
  'an id that is read at an edge is the id of the message, or none',
  () => {
    const wide = fc.tuple(answer, fc.nat(3), fc.nat(600)).map(([text, where, length]) => {
      const filler = ['"id":9}', '\\"id\\":9}', 'x', ',"id":9,"jsonrpc":"2.0"}'][where]?.repeat(length)
      const message = JSON.parse(text) as Record<string, object>
      const kind = 'result' in message ? 'result' : 'error'
      message[kind] = { filler, ...message[kind], id: 3 }
      return JSON.stringify(message)
    })
    fc.assert(
      fc.property(wide, (text) => {
        const bytes = Buffer.from(text)
        const found = recoverId(bytes.subarray(0, 512), bytes.subarray(-512))
        if (found === undefined) return
        const message = JSON.parse(text) as { id: unknown }
        expect(JSON.parse(found)).toEqual(message.id)
      }),
      { numRuns: Math.ceil(FUZZ_RUNS / 4) },
    )
  },
  FUZZ_TIMEOUT_MS,
)

test(
  'only a number, or its plain text, is the id of a call',
  () => {
    const id = fc.oneof(
      fc.integer({ min: -10, max: 1_000_000 }),
      fc.integer({ min: -10, max: 1_000_000 }).map(String),
      fc.constantFrom('1e3', '0x7', ' 7', '7 ', '07', '', '7.0', '+7', '١', null, true, [], [7], {}),
      fc.string(),
      fc.double(),
    )
    fc.assert(
      fc.property(id, (value) => {
        const call = callIdOf(value)
        const isPlain = typeof value === 'number' || (typeof value === 'string' && /^[1-9][0-9]{0,15}$/.test(value))
        if (isPlain) expect(call).toBe(Number(value))
        else expect(call).toBeNaN()
        if (typeof value === 'string' || Number.isSafeInteger(value)) {
          const text = JSON.stringify(value)
          const inJson = callIdInJson(text)
          expect(Number.isNaN(inJson) || inJson === Number(value)).toBe(true)
        }
      }),
      { numRuns: FUZZ_RUNS },
    )
  },
  FUZZ_TIMEOUT_MS,
)
