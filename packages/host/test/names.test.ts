import { verifies } from '@convoke/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  assignNames,
  explainName,
  FLAT_STYLE,
  flatName,
  NAMESPACED_STYLE,
  type NameIdentity,
} from '../src/catalog/names.ts'

const identity = (server: string, rawName: string): NameIdentity => ({
  server,
  namespace: server,
  callableName: rawName,
  rawName,
})
const NOBODY = { namespace: '', tool: '' }
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

  const namespaced = (all: readonly NameIdentity[], charsMax = 64): { namespace: string; tool: string }[] =>
    assignNames(all, { ...NAMESPACED_STYLE, charsMax })

  verifies('conn.061', () => {
    const all = [identity('srv', 'echo'), identity('srv', 'create-issue'), identity('other_2', 'echo')]
    expect(flat(all)).toEqual(['srv__echo', 'srv__create-issue', 'other_2__echo'])
    expect(namespaced(all).map(({ namespace, tool }) => `${namespace} ${tool}`)).toEqual([
      'mcp__srv echo',
      'mcp__srv create-issue',
      'mcp__other_2 echo',
    ])
    expect(all.map((one, index) => explainName(one, namespaced(all)[index] ?? NOBODY, NAMESPACED_STYLE))).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  verifies('conn.063', () => {
    for (const charsMax of [24, 64, 128]) {
      const room = charsMax - 'mcp__srv__'.length
      const [fits] = namespaced([identity('srv', 't'.repeat(room))], charsMax)
      expect(fits).toEqual({ namespace: 'mcp__srv', tool: 't'.repeat(room) })
      const [cut] = namespaced([identity('srv', 't'.repeat(room + 1))], charsMax)
      expect(cut?.tool).toMatch(/^t+_[0-9a-f]{12}$/)
      expect(`${cut?.namespace}__${cut?.tool}`).toHaveLength(charsMax)
    }
    const long = identity('srv', 't'.repeat(80))
    expect(explainName(long, namespaced([long])[0] ?? NOBODY, NAMESPACED_STYLE)).toBe('cut')
  })

  verifies('conn.064', () => {
    const head = 'é'.repeat(10)
    const all = ['a', 'b'].map((end) => identity('srv', `${head}${'t'.repeat(120)}${end}`))
    const names = namespaced(all, 128)
    expect(new Set(names.map(flatName)).size).toBe(2)
    for (const name of names) {
      expect(name.namespace).toBe('mcp__srv')
      expect(flatName(name)).toMatch(/^[A-Za-z0-9_-]{128}$/)
    }
  })

  verifies('conn.065', () => {
    const all = [identity('my.server', 'a.b/c-d'), identity('日本', '')]
    expect(namespaced(all)).toEqual([
      { namespace: 'mcp__my_server', tool: 'a_b_c-d' },
      { namespace: 'mcp____', tool: '_' },
    ])
    expect(all.map(({ server, rawName }) => [server, rawName])).toEqual([
      ['my.server', 'a.b/c-d'],
      ['日本', ''],
    ])
    expect(explainName(identity('s', 'a.b'), { namespace: 'mcp__s', tool: 'a_b' }, NAMESPACED_STYLE)).toBe('cleaned')
    expect(explainName(identity('s.t', 'a'), { namespace: 'mcp__s_t', tool: 'a' }, NAMESPACED_STYLE)).toBe('cleaned')
  })

  verifies('conn.066', () => {
    const all = ['a b', 'a.b', 'a/b', 'a_b'].map((server) => identity(server, 'x'))
    const names = namespaced(all)
    expect(new Set(names.map(({ namespace }) => namespace)).size).toBe(4)
    for (const [index, name] of names.entries()) {
      expect(name.namespace).toMatch(/^mcp__a_b_[0-9a-f]{12}$/)
      expect(explainName(all[index] ?? identity('', ''), name, NAMESPACED_STYLE)).toBe('namespace-collision')
    }
  })

  verifies('conn.067', () => {
    const all = [identity('s', 'a.b'), identity('s', 'a/b')]
    const names = namespaced(all)
    expect(new Set(names.map(({ tool }) => tool)).size).toBe(2)
    for (const [index, name] of names.entries()) {
      expect(name).toEqual({ namespace: 'mcp__s', tool: expect.stringMatching(/^a_b_[0-9a-f]{12}$/) })
      expect(explainName(all[index] ?? identity('', ''), name, NAMESPACED_STYLE)).toBe('collision')
    }
  })

  test('servers without the prefix are named by their keys, and others keep it', () => {
    const style = { ...NAMESPACED_STYLE, unprefixed: new Set(['a.b', 'mcp__c']) }
    const all = [identity('a.b', 'x'), identity('a-b', 'x'), identity('mcp__c', 'x'), identity('d', 'a.b')]
    expect(assignNames(all, style).map(({ namespace }) => namespace)).toEqual(['a_b', 'mcp__a-b', 'mcp__c', 'mcp__d'])
  })

  test('what separates a connector from its tool is left out of flat names only, and never the whole name', () => {
    const connected = (callableName: string): NameIdentity => ({
      server: 'apps',
      namespace: 'apps__mail',
      connectorId: 'c',
      callableName,
      rawName: `mail${callableName}`,
    })
    const all = [connected('_list'), connected('__'), connected('-send')]
    expect(flat(all)).toEqual(['apps__mail__list', 'apps__mail____', 'apps__mail__send'])
    expect(namespaced(all).map(({ tool }) => tool)).toEqual(['_list', '__', '-send'])
    expect(flatOf(['s', '_list'])).toEqual(['s___list'])
    // Two that differ in nothing else do not become one.
    const twins = flat([connected('_list'), connected('list')])
    expect(new Set(twins).size).toBe(2)
    for (const name of twins) expect(name).toMatch(/^apps__mail__list_[0-9a-f]{12}$/)
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
