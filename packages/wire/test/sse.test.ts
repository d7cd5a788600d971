import { verifies } from '@convoke/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventReader } from '../src/sse.ts'

type Seen =
  | { kind: 'event'; data: string; type: string }
  | { kind: 'oversized' }
  | { kind: 'id'; id: string }
  | { kind: 'retry'; ms: number }

const FUZZ_RUNS = Number(process.env['CONVOKE_FUZZ_RUNS'] ?? 1_000)

function read(chunks: readonly Buffer[], eventBytesMax = 1_000_000): Seen[] {
  const seen: Seen[] = []
  const reader = new EventReader(
    {
      event: (bytes, start, end, type) =>
        seen.push({ kind: 'event', data: bytes.toString('latin1', start, end), type }),
      oversized: () => seen.push({ kind: 'oversized' }),
      id: (id) => seen.push({ kind: 'id', id }),
      retry: (ms) => seen.push({ kind: 'retry', ms }),
    },
    eventBytesMax,
  )
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
  return seen
}

/** The standard's algorithm, as slow and plain as it is written there. Latin-1 in, so that one character is one byte. */
function readSlowly(text: string, eventBytesMax: number): Seen[] {
  const seen: Seen[] = []
  const stream = text.startsWith('\xef\xbb\xbf') ? text.slice(3) : text
  const lines = stream.split(/\r\n|\r|\n/)
  lines.pop() // what no line end has ended
  let event: Unfinished = { data: [], type: '' }
  for (const line of lines) {
    if (line !== '') {
      readField(line, event, seen)
      continue
    }
    if (event.id !== undefined) seen.push({ kind: 'id', id: event.id })
    const whole = event.data.join('\n')
    if (whole.length > eventBytesMax) seen.push({ kind: 'oversized' })
    else if (event.data.length > 0) seen.push({ kind: 'event', data: whole, type: event.type })
    event = { data: [], type: '' }
  }
  return seen
}

interface Unfinished {
  data: string[]
  type: string
  id?: string
}

function readField(line: string, event: Unfinished, seen: Seen[]): void {
  const colon = line.indexOf(':')
  const field = colon === -1 ? line : line.slice(0, colon)
  const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
  if (field === 'data') event.data.push(value)
  else if (field === 'event') event.type = Buffer.from(value, 'latin1').toString('utf8')
  else if (field === 'id' && !value.includes('\0')) event.id = value
  else if (field === 'retry' && /^\d{1,12}$/.test(value)) seen.push({ kind: 'retry', ms: Number(value) })
}

const piece = fc.constantFrom(
  ...[
    '\n',
    '\r',
    '\r\n',
    '\n\n',
    '\r\r',
    ':',
    ' ',
    '  ',
    'data',
    'data:',
    'data: ',
    'data:x',
    'dat',
    'datax: 1',
    'event: message\n',
    'event:endpoint\r',
  ],
  ...[
    'id: 7\n',
    'id:\n',
    'id\n',
    'id: a\0b\r\n',
    'retry: 250\n',
    'retry: 1e3\n',
    'retry:\n',
    'retry: 99999999999999\n',
    ': keep-alive\n',
    ':\n',
  ],
  ...[
    '{"jsonrpc":"2.0","id":1,"result":{}}',
    'größe',
    '\xef\xbb\xbf',
    '\xef',
    '\xef\xbb',
    'unknown: x\n',
    'a long piece of text '.repeat(4),
  ],
)

verifies('wire.130', () => {
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 40 }),
      fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 40 }),
      fc.integer({ min: 0, max: 90 }),
      (pieces, cuts, eventBytesMax) => {
        const text = Buffer.from(pieces.join(''), 'latin1')
        const chunks: Buffer[] = []
        let at = 0
        for (const cut of cuts) {
          chunks.push(text.subarray(at, at + cut))
          at = Math.min(text.length, at + cut)
        }
        chunks.push(text.subarray(at))
        expect(read(chunks, eventBytesMax)).toEqual(readSlowly(text.toString('latin1'), eventBytesMax))
      },
    ),
    { numRuns: FUZZ_RUNS },
  )
})

test('reads every line end, several data lines, a byte order mark and comments', () => {
  const text = '\xef\xbb\xbf: hello\r\ndata: one\rdata:two\ndata\r\n\r\nevent: endpoint\ndata:  x\n\n'
  for (const size of [1, 2, 3, 7, 1_000]) {
    const bytes = Buffer.from(text, 'latin1')
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
      bytes.subarray(n * size, (n + 1) * size),
    )
    expect(read(chunks)).toEqual([
      { kind: 'event', data: 'one\ntwo\n', type: '' },
      { kind: 'event', data: ' x', type: 'endpoint' },
    ])
  }
})

test('an id counts from the end of its event on, and not when it holds a NUL', () => {
  expect(read([Buffer.from('id: 1\ndata: a\n\nid: 2\nid: x\0y\ndata: b\n\nid: 3\ndata: never ended\n')])).toEqual([
    { kind: 'id', id: '1' },
    { kind: 'event', data: 'a', type: '' },
    { kind: 'id', id: '2' },
    { kind: 'event', data: 'b', type: '' },
  ])
})

verifies('wire.131', () => {
  const big = Buffer.alloc(5_000, 'x')
  const stream = (...parts: (string | Buffer)[]): Seen[] =>
    read(
      parts.map((part) => Buffer.from(part)),
      1_000,
    )
  const fine: Seen = { kind: 'event', data: 'fine', type: '' }
  expect(stream('data: ', big, '\n\ndata: fine\n\n')).toEqual([{ kind: 'oversized' }, fine])
  expect(stream(`data: ${big}\n\ndata: fine\n\n`)).toEqual([{ kind: 'oversized' }, fine])
  expect(stream('data: small\n'.repeat(500), '\n', 'data: fine\n\n')).toEqual([{ kind: 'oversized' }, fine])
  expect(stream(': ', big, big, '\ndata: fine\n\n')).toEqual([fine])
  expect(stream('id: ', big, big, '\ndata: fine\n\n')).toEqual([fine])
  expect(stream('strange', big, big, '\ndata: fine\n\n')).toEqual([fine])
})

test('an oversized event shows its first and last bytes', () => {
  const edges: string[] = []
  const reader = new EventReader(
    {
      event: () => {},
      oversized: (head, tail, length) =>
        edges.push(head.toString().slice(0, 8), tail.toString().slice(-9), String(length)),
      id: () => {},
      retry: () => {},
    },
    10_000,
  )
  const bytes = Buffer.from(`data: {"id":7,${'x'.repeat(30_000)},"last":1}\n\n`)
  for (let at = 0; at < bytes.length; at += 777) reader.push(bytes.subarray(at, at + 777))
  expect(edges).toEqual(['{"id":7,', '"last":1}', '30018'])
})

test('a stream of single bytes and of empty data lines stays small', () => {
  let seen = 0
  const reader = new EventReader(
    { event: (_bytes, start, end) => (seen = end - start), oversized: () => {}, id: () => {}, retry: () => {} },
    4_000_000,
  )
  global.gc?.()
  const before = process.memoryUsage().heapUsed
  const empty = Buffer.from('data:\n'.repeat(10_000))
  for (let n = 0; n < 100; n++) reader.push(empty)
  for (let n = 0; n < 6; n++) reader.push(Buffer.from('data: '.slice(n, n + 1)))
  const one = Buffer.from('x')
  for (let n = 0; n < 500_000; n++) reader.push(one)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(120_000_000)
  reader.push(Buffer.from('\n\n'))
  expect(seen).toBe(1_500_000)
})
