import fc from 'fast-check'
import { expect, test } from 'vitest'
import { structureFault } from '../src/structure.ts'
import { FUZZ_RUNS, FUZZ_TIMEOUT_MS } from './lines.ts'

const judge = (text: string): string | undefined => {
  const bytes = Buffer.from(`"[${text}"]`)
  return structureFault(bytes, 2, bytes.length - 2)
}
const deep = (depth: number, inside = ''): string => `${'['.repeat(depth)}${inside}${']'.repeat(depth)}`

test(
  'what is inside strings does not count, however they end',
  () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom('\\', '"', '\\"', '[[[[', '{{', ',,,', 'x'.repeat(40), '\\'.repeat(33)),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.integer({ min: 990, max: 1_001 }), (pieces, depth) => {
        const text = deep(depth, JSON.stringify(pieces.join('')))
        expect(judge(text)).toBe(depth > 1_000 ? 'is nested more than 1000 deep' : undefined)
      }),
      { numRuns: FUZZ_RUNS },
    )
  },
  FUZZ_TIMEOUT_MS,
)

test('depth and number each have their limit', () => {
  expect(judge(deep(1_000))).toBeUndefined()
  expect(judge(deep(1_001))).toBe('is nested more than 1000 deep')
  expect(judge(deep(500).repeat(50))).toBeUndefined()
  expect(judge(`[${'0,'.repeat(3_999_999)}0]`)).toBeUndefined()
  expect(judge(`[${'0,'.repeat(4_000_000)}0]`)).toBe('holds more than 4000000 values')
  expect(judge('"never ended [[[')).toBeUndefined()
})
