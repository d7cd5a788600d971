import { verifies } from '@convoke/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assignNames, FLAT_STYLE, flatName, NAMESPACED_STYLE, type NameIdentity } from '../src/catalog/names.ts'

const identity = (server: string, rawName: string): NameIdentity => ({
  server,
  namespace: server,
  callableName: rawName,
  rawName,
})
const flat = (identities: readonly NameIdentity[], charsMax = 48): string[] =>
  assignNames(identities, { ...FLAT_STYLE, charsMax }).map(flatName)
const flatOf = (...pairs: readonly (readonly [string, string])[]): string[] =>
  flat(pairs.map((pair) => identity(...pair)))

const word = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc.string({ unit: fc.constantFrom('a', 'b', '_', '-', '.', '/', ' ', 'é', '日'), maxLength: 12 }),
  fc.constantFrom('a', 'a_', '_a', 'a__b', 'search_a', 'search-a', 'search.a', 'x'.repeat(50), 'x'.repeat(51)),
)
const identities = fc
  .array(fc.tuple(word, word), { maxLength: 40 })
  .map((pairs) => [...new Map(pairs.map((pair) => [JSON.stringify(pair), identity(...pair)])).values()])

describe('names', () => {
  verifies('catalog.001', () => {
    fc.assert(
      fc.property(identities, fc.integer({ min: 24, max: 128 }), (all, charsMax) => {
        const names = flat(all, charsMax)
        expect(new Set(names).size).toBe(all.length)
        for (const name of names) expect(name).toMatch(new RegExp(`^[A-Za-z0-9_-]{1,${charsMax}}$`))
      }),
      { numRuns: 400 },
    )
    // The default is the 48 characters of the promise.
    expect(FLAT_STYLE.charsMax).toBe(48)
  })

  verifies('catalog.002', () => {
    fc.assert(
      fc.property(
        identities.chain((all) =>
          fc.record({ all: fc.constant(all), shuffled: fc.shuffledSubarray(all, { minLength: all.length }) }),
        ),
        ({ all, shuffled }) => {
          const named = new Map(flat(all).map((name, index) => [all[index], name]))
          expect(flat(shuffled)).toEqual(shuffled.map((one) => named.get(one)))
        },
      ),
      { numRuns: 300 },
    )
  })

  verifies('catalog.003', () => {
    // A new server whose sanitised name nobody has, and whose flat names nobody wants, collides with nobody.
    fc.assert(
      fc.property(identities, fc.array(word, { maxLength: 8 }), (all, tools) => {
        const before = flat(all)
        const added = [...new Set(tools)].map((tool) => identity('zz9-newcomer', tool))
        expect(flat([...all, ...added]).slice(0, all.length)).toEqual(before)
      }),
      { numRuns: 300 },
    )
    // And one that does collide renames only those it collides with.
    const before = flatOf(['a', 'b__c'], ['a', 'other'], ['q', 'z'])
    const after = flatOf(['a', 'b__c'], ['a', 'other'], ['q', 'z'], ['a__b', 'c'])
    expect(before).toEqual(['a__b__c', 'a__other', 'q__z'])
    expect(after.slice(1, 3)).toEqual(['a__other', 'q__z'])
    expect(after[0]).toMatch(/^a__b__c_[0-9a-f]{12}$/)
    expect(after[3]).toMatch(/^a__b__c_[0-9a-f]{12}$/)
    expect(after[0]).not.toBe(after[3])
  })

  verifies('catalog.004', () => {
    const fits = 't'.repeat(48 - 'srv__'.length)
    expect(flatOf(['srv', fits])).toEqual([`srv__${fits}`])
    expect(flatOf(['github', 'create-issue'])).toEqual(['github__create-issue'])
    // One character more: a readable head, and the same hash whatever else is there.
    const [cut] = flatOf(['srv', `${fits}t`])
    expect(cut).toHaveLength(48)
    expect(cut).toMatch(/^srv__t{30}_[0-9a-f]{12}$/)
    expect(flatOf(['other', 'x'], ['srv', `${fits}t`])[1]).toBe(cut)
    // A long server name still leaves something of the tool.
    const [long] = flatOf(['0f8fad5b-d9cb-469f-a165-70867728950e-and-more', 'search_documents'])
    expect(long).toMatch(/^0f8fad5b-[0-9a-z-]+__search_d_[0-9a-f]{12}$/)
    expect(long).toHaveLength(48)
  })

  verifies('catalog.005', () => {
    const names = (pairs: readonly (readonly [string, string])[]): string[] =>
      assignNames(
        pairs.map((pair) => identity(...pair)),
        NAMESPACED_STYLE,
      ).map(({ namespace, tool }) => `${namespace} ${tool}`)
    expect(
      names([
        ['rmcp', 'echo'],
        ['mcp__already', 'x'],
      ]),
    ).toEqual(['mcp__rmcp echo', 'mcp__already x'])
    // Known digests: SHA-1 over server, namespace and connector; and over these, the callable and the raw name.
    const [dotted] = names([
      ['srv', 'a.b'],
      ['srv', 'a_b'],
    ])
    expect(dotted).toBe('mcp__srv a_b_7c8adfa3e172')
    const colliding = names([
      ['a b', 'x'],
      ['a_b', 'x'],
    ])
    expect(new Set(colliding.map((name) => name.split(' ')[0])).size).toBe(2)
    for (const name of colliding) expect(name).toMatch(/^mcp__a_b_[0-9a-f]{12} x$/)
    fc.assert(
      fc.property(identities, (all) => {
        const made = assignNames(all, NAMESPACED_STYLE)
        expect(new Set(made.map(flatName)).size).toBe(all.length)
        for (const { namespace, tool } of made) {
          expect(namespace.length + 2 + tool.length).toBeLessThanOrEqual(64)
          expect(namespace).toMatch(/^mcp__[A-Za-z0-9_-]*$/)
        }
      }),
      { numRuns: 200 },
    )
  })

  test('colliding sanitised servers all get a hash of their own, and nobody else does', () => {
    const names = flatOf(['a.b', 't'], ['a/b', 't'], ['a b', 'u'], ['a-b', 't'])
    expect(names[3]).toBe('a-b__t')
    for (const name of names.slice(0, 3)) expect(name).toMatch(/^a_b_[0-9a-f]{12}__[tu]$/)
    expect(new Set(names).size).toBe(4)
  })

  test('a tool that is named like the hashed form of another takes nothing from it silently', () => {
    const [hashed] = flatOf(['s', 'a.b'], ['s', 'a_b'])
    const spoof = hashed?.slice('s__'.length) ?? ''
    const names = flatOf(['s', 'a.b'], ['s', 'a_b'], ['s', spoof])
    expect(new Set(names).size).toBe(3)
    // Both who want the name give it up; the third, which does not, keeps its own.
    expect(names).not.toContain(hashed)
    expect(names[1]).toBe(flatOf(['s', 'a.b'], ['s', 'a_b'])[1])
  })

  test('connectors are a segment of the flat name', () => {
    const made = assignNames(
      [
        {
          server: 'apps',
          namespace: 'apps__calendar',
          connectorId: 'c1',
          callableName: 'list',
          rawName: 'calendar_list',
        },
      ],
      FLAT_STYLE,
    )
    expect(made.map(flatName)).toEqual(['apps__calendar__list'])
  })
})
