import { expect, test } from 'vitest'
import { verifies } from '../src/index.ts'
import type { Requirement } from '../src/requirements/requirement.ts'
import { checkRequirements, citationsIn } from '../src/requirements-check.ts'

const one = (id: string, milestone: Requirement['milestone'] = 1): Requirement => ({
  id,
  text: `Does ${id}`,
  milestone,
})
// Put together, so that the gate does not take these samples for citations.
const call = `${'verifies'}(`

test('reads single ids and lists of ids from a source', () => {
  const source = `${call}'a.001', () => {})\n${call}\n  ['b.001', "b.002"],\n async () => {})\nother('c.001')`
  expect(citationsIn('x.test.ts', source).map(({ id }) => id)).toEqual(['a.001', 'b.001', 'b.002'])
})

verifies('house.002', () => {
  const requirements = [one('a.001'), one('a.002'), one('a.003', 3), one('a.001'), one('bad')]
  const citations = ['a.001', 'bad', 'z.009'].map((id) => ({ id, file: 'x.test.ts' }))
  expect(checkRequirements(requirements, [1], citations)).toEqual({
    verified: ['a.001', 'a.001', 'bad'],
    missing: ['a.002'],
    faults: [
      'a.001 stands in the manifest twice',
      'bad is not of the form area.NNN',
      'x.test.ts cites z.009, which is not in the manifest',
    ],
  })
})
