import { verifies } from '@convoke/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LineReader } from '../src/line-reader.ts'
import { FUZZ_RUNS, FUZZ_TIMEOUT_MS } from './lines.ts'

type Seen = { line: string } | { oversized: number; head: string; tail: string }

function readAll(chunks: readonly Buffer[], lineBytesMax: number): Seen[] {
  const seen: Seen[] = []
  const reader = new LineReader(
    {
      line: (bytes, start, end) => seen.push({ line: bytes.toString('latin1', start, end) }),
      oversized: (head, tail, length) =>
        seen.push({ oversized: length, head: head.toString('latin1'), tail: tail.toString('latin1') }),
    },
    lineBytesMax,
  )
  for (const chunk of chunks) reader.push(chunk)
  reader.flush()
  return seen
}

/** The obvious way, for comparison. */
function readSlowly(text: string, lineBytesMax: number): Seen[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.map((line) =>
    line.length <= lineBytesMax
      ? { line }
      : { oversized: line.length, head: line.slice(0, 512), tail: line.slice(-512) },
  )
}

/** Text over few characters, many of them line ends, cut at any places. */
const stream = fc.tuple(
  fc.array(
    fc.oneof(
      fc.constant('\n'),
      fc.constant('\r\n'),
      fc.string({ maxLength: 12 }),
      fc.nat(2_000).map((n) => 'y'.repeat(n)),
    ),
    {
      maxLength: 30,
    },
  ),
  fc.array(fc.nat(3_000), { maxLength: 30 }),
  fc.integer({ min: 1, max: 3_000 }),
)

function cut(text: string, sizes: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text, 'latin1')
  const chunks: Buffer[] = []
  let at = 0
  for (const size of sizes) {
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return [...chunks, bytes.subarray(at)].filter(({ length }) => length > 0)
}

verifies(
  'wire.001',
  () => {
    fc.assert(
      fc.property(stream, ([parts, sizes, lineBytesMax]) => {
        const text = parts.join('').replace(/[^\0-\xff]/g, '?')
        const fast = readAll(cut(text, sizes), lineBytesMax)
        const slow = readSlowly(text, lineBytesMax)
        expect(fast.map(facts)).toEqual(slow.map(facts))
      }),
      { numRuns: FUZZ_RUNS },
    )
  },
  FUZZ_TIMEOUT_MS,
)

/** How much of the edges is kept depends on the chunks; that they are edges does not. */
function facts(seen: Seen): unknown {
  return 'line' in seen ? seen : { oversized: seen.oversized }
}

verifies(
  'wire.002',
  () => {
    fc.assert(
      fc.property(stream, ([parts, sizes]) => {
        const text = `${parts.join('').replace(/[^\0-\xff]|\n/g, '?')}${'z'.repeat(600)}`
        const [only] = readAll(cut(text, sizes), 10)
        expect(only).toEqual({ oversized: text.length, head: text.slice(0, 512), tail: text.slice(-512) })
      }),
      { numRuns: Math.ceil(FUZZ_RUNS / 4) },
    )
    // Byte by byte, far over the cap: what is kept must not grow with what comes.
    const reader = new LineReader({ line: () => {}, oversized: () => {} }, 1_000_000)
    const byte = Buffer.from('x')
    const before = process.memoryUsage().heapUsed
    for (let count = 0; count < 900_000; count++) reader.push(byte)
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(60_000_000)
  },
  FUZZ_TIMEOUT_MS,
)

test('a line that ends exactly at the cap is a line', () => {
  expect(readAll([Buffer.from('12345\n123456\n12345')], 5)).toEqual([
    { line: '12345' },
    { oversized: 6, head: '123456', tail: '123456' },
    { line: '12345' },
  ])
})
