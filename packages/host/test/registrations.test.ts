// Which definition a name gets.
import type { ServerDefinition } from '@convoke/host'
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import {
  type EnvironmentAuthority,
  type RegistrationAction,
  type RegistrationAuthority,
  type RegistrationCatalog,
  type RegistrationSource,
  resolveRegistrations,
  sameRegistration,
} from '../src/config/index.ts'
import { http, scripted } from './support.ts'

const found = (plugin: string, order = 0): RegistrationSource => ({ kind: 'discovered-plugin', plugin, order })
const selected = (plugin: string, order = 0): RegistrationSource => ({ kind: 'selected-plugin', plugin, order })
const config: RegistrationSource = { kind: 'config' }
const compatibility: RegistrationSource = { kind: 'compatibility' }
const extension = (id: string, order = 0): RegistrationSource => ({ kind: 'extension', extension: id, order })

const declare = (source: RegistrationSource, more: Partial<ServerDefinition> = {}): RegistrationAction => ({
  kind: 'declare',
  source,
  definition: http('s', `https://${labelOf(source)}.example/`, more),
})
const remove = (source: RegistrationSource, name = 's'): RegistrationAction => ({ kind: 'remove', source, name })

function labelOf(source: RegistrationSource): string {
  if (source.kind === 'extension') return source.extension
  return 'plugin' in source ? source.plugin : source.kind
}

/** `who outcome (why) over whom by what`. */
function told({ registrations }: RegistrationCatalog): string[] {
  return registrations.map(({ source, outcome, disabledBecause, shadowed }) => {
    const losers = shadowed.map((one) => `${labelOf(one.source)} ${one.action} ${one.because}`).join(', ')
    const why = disabledBecause === undefined ? '' : ` (${disabledBecause})`
    return `${labelOf(source)} ${outcome}${why}${losers === '' ? '' : ` over ${losers}`}`
  })
}

function resolved(actions: readonly RegistrationAction[], authority?: RegistrationAuthority): string {
  return told(resolveRegistrations(actions, authority)).join('; ')
}

const conflictsOf = (actions: readonly RegistrationAction[]): string[] =>
  resolveRegistrations(actions).conflicts.map(
    ({ name, tier, contenders, winner, outcome }) =>
      `${name} ${tier}: ${contenders.map(labelOf).join(', ')}; ${labelOf(winner)} ${outcome}`,
  )

verifies('conn.132', () => {
  const all = [
    declare(extension('late', 2)),
    declare(compatibility),
    declare(extension('early', 1)),
    declare(config),
    declare(selected('chosen')),
    declare(found('found')),
  ]
  expect(resolved(all)).toBe(
    'late enabled over early declare order, compatibility declare tier, config declare tier, chosen declare tier, found declare tier',
  )
  expect(conflictsOf(all)).toEqual(['s extension: late, early; late enabled'])
  expect(resolveRegistrations(all).definitions).toEqual([http('s', 'https://late.example/')])
})

verifies('conn.133', () => {
  const two = [
    declare(config),
    declare(extension('e')),
    { ...declare(config), definition: http('other', 'https://o.example') } as RegistrationAction,
  ]
  const catalog = resolveRegistrations(two, { vetoes: new Set(['s']) })
  expect(told(catalog)).toEqual(['e disabled (name-veto) over config declare tier', 'config enabled'])
  expect(catalog.definitions).toEqual([
    http('s', 'https://e.example/', { enabled: false }),
    http('other', 'https://o.example'),
  ])
})

verifies('conn.134', () => {
  const off = { enabled: false }
  const table: [RegistrationAction[], string][] = [
    [[declare(config, off), declare(extension('e'))], 'e disabled (name-veto) over config declare tier'],
    [[declare(config, off), declare(compatibility)], 'compatibility disabled (name-veto) over config declare tier'],
    [[declare(found('f'), off), declare(extension('e'))], 'e disabled (name-veto) over f declare tier'],
    [[declare(found('f'), off), declare(selected('p'))], 'p disabled (name-veto) over f declare tier'],
    [[declare(selected('p'), off), declare(extension('e'))], 'e enabled over p declare tier'],
    [[declare(selected('p'), off), declare(compatibility)], 'compatibility enabled over p declare tier'],
    [[declare(compatibility, off), declare(extension('e'))], 'e disabled (name-veto) over compatibility declare tier'],
    // The configuration is no overlay: its newer word counts, and what it has switched on is on.
    [[declare(found('f'), off), declare(config)], 'config enabled over f declare tier'],
    [
      [declare(found('f'), off), declare(config), declare(extension('e'))],
      'e enabled over config declare tier, f declare tier',
    ],
    [
      [declare(config, off), remove(config), declare(extension('e'))],
      'e enabled over config remove tier, config declare tier',
    ],
    [[declare(extension('e'), off)], 'e disabled (own)'],
    [[declare(selected('p'), off), declare(found('f'))], 'p disabled (own) over f declare tier'],
    [[declare(extension('a', 1), off), declare(extension('b', 2))], 'b enabled over a declare order'],
  ]
  for (const [actions, outcome] of table) expect(resolved(actions)).toBe(outcome)
})

verifies('conn.135', () => {
  for (const plugin of [found, selected]) {
    const two = [declare(plugin('second', 2)), declare(plugin('first', 1))]
    expect(resolved(two)).toBe('first enabled over second declare order')
    expect(resolved(two.toReversed())).toBe('first enabled over second declare order')
    expect(conflictsOf(two)).toEqual([`s ${plugin('x').kind}: first, second; first enabled`])
  }
  // The conflict below is told although somebody above has the name in the end.
  expect(conflictsOf([declare(found('a')), declare(found('b', 1)), declare(config, { enabled: false })])).toEqual([
    's discovered-plugin: a, b; config disabled',
  ])
})

verifies('conn.136', () => {
  expect(resolved([declare(selected('p')), declare(found('f'))])).toBe('p enabled over f declare tier')
  expect(resolved([declare(config), declare(selected('p'))])).toBe('config enabled over p declare tier')
  expect(resolved([declare(config), declare(compatibility)])).toBe('compatibility enabled over config declare tier')
  expect(conflictsOf([declare(config), declare(selected('p')), declare(found('f'))])).toEqual([])
})

verifies('conn.137', () => {
  const first = http('s', 'https://first.example')
  const later = http('s', 'https://later.example')
  const say = (source: RegistrationSource, definition: ServerDefinition): RegistrationAction => ({
    kind: 'declare',
    source,
    definition,
  })
  for (const source of [config, compatibility, found('p'), selected('p'), extension('e')]) {
    const catalog = resolveRegistrations([say(source, first), say(source, later)])
    expect(catalog.definitions).toEqual([later])
    expect(catalog.registrations[0]?.shadowed).toEqual([{ source, action: 'declare', because: 'later-action' }])
    expect(catalog.conflicts).toHaveLength(1)
  }
  expect(resolved([declare(config), remove(config)])).toBe('config removed over config declare later-action')
  expect(resolved([remove(config), declare(config)])).toBe('config enabled over config remove later-action')
  const vetoed = resolveRegistrations([declare(config), remove(extension('e'))])
  expect(told(vetoed)).toEqual(['e removed over config declare tier'])
  expect([vetoed.definitions, vetoed.registrations[0]?.definition]).toEqual([[], undefined])
  expect(resolved([remove(selected('p')), declare(config)])).toBe('config enabled over p remove tier')
})

verifies('conn.138', () => {
  const plugin = { id: 'p', displayName: 'P', root: '/a', isSelected: true }
  const one = scripted('s', {}, { plugin })
  expect(sameRegistration(one, scripted('s', {}, { plugin }))).toBe(true)
  expect(sameRegistration(one, scripted('s', {}, { plugin: { ...plugin, root: '/b' } }))).toBe(false)
  expect(sameRegistration(one, scripted('s'))).toBe(false)
  expect(sameRegistration(one, { ...one, enabled: false })).toBe(false)
  expect(sameRegistration(one, { ...one, source: { layer: 'user', file: '/f', line: 7 } })).toBe(true)
})

verifies('conn.139', () => {
  const remote = { environment: 'box' }
  const within = (authority: EnvironmentAuthority): RegistrationAuthority => ({ environments: { box: authority } })
  const nothing = within({ kind: 'restricted', servers: [] })
  const allowed = 'enabled'
  const denied = 'disabled (requirements)'
  const outcome = (action: RegistrationAction, authority: RegistrationAuthority): string =>
    resolved([action], authority).replace(/^\S+ /, '')
  const process = (more: Partial<ServerDefinition> = {}): RegistrationAction => ({
    kind: 'declare',
    source: config,
    definition: {
      ...scripted('s', {}, { ...remote, ...more }),
      transport: { kind: 'stdio', command: 'tool', args: [], env: {}, envVars: [] },
    },
  })
  const only = (...servers: { name: string; command?: string; url?: string }[]): RegistrationAuthority =>
    within({ kind: 'restricted', servers })
  const packages = (plugins: Record<string, { name: string }[]>, servers?: { name: string }[]): RegistrationAuthority =>
    within({ kind: 'restricted', plugins, ...(servers === undefined ? {} : { servers }) })
  const table: [RegistrationAction, RegistrationAuthority, string][] = [
    [declare(extension('e'), remote), nothing, denied],
    [declare(config, remote), nothing, denied],
    [declare(selected('p'), remote), nothing, denied],
    [declare(found('p'), remote), nothing, denied],
    [declare(extension('e'), { ...remote, hosted: true }), nothing, allowed],
    [declare(extension('e'), { ...remote, hosted: true }), within({ kind: 'unavailable' }), allowed],
    [declare(extension('e')), nothing, allowed], // runs elsewhere
    [declare(extension('e'), { environment: 'constructor' }), nothing, allowed],
    [declare(extension('e'), remote), within({ kind: 'unrestricted' }), allowed],
    [declare(config, remote), within({ kind: 'unavailable' }), denied],
    [declare(selected('p'), remote), within({ kind: 'unavailable' }), denied],
    [declare(selected('p'), remote), within({ kind: 'selected-plugins-only' }), allowed],
    [declare(found('p'), remote), within({ kind: 'selected-plugins-only' }), denied],
    [declare(config, remote), within({ kind: 'selected-plugins-only' }), denied],
    [declare(config, remote), within({ kind: 'restricted' }), allowed],
    [declare(config, remote), only({ name: 's' }), allowed],
    [declare(config, remote), only({ name: 'other' }), denied],
    [declare(config, remote), only({ name: 's', url: 'https://config.example/' }), allowed],
    [declare(config, remote), only({ name: 's', url: 'https://evil.example/' }), denied],
    [declare(config, remote), only({ name: 's', command: 'tool' }), denied],
    [process(), only({ name: 's', command: 'tool' }), allowed],
    [process(), only({ name: 's', command: 'other' }), denied],
    [process(), only({ name: 's', url: 'https://config.example/' }), denied],
    [declare(selected('p'), remote), within({ kind: 'restricted' }), allowed],
    [declare(selected('p'), remote), only({ name: 'other' }), allowed],
    [declare(selected('p'), remote), packages({ p: [{ name: 's' }] }), allowed],
    [declare(found('p'), remote), packages({ p: [{ name: 's' }] }), allowed],
    [declare(selected('p'), remote), packages({ p: [{ name: 'other' }] }), denied],
    [declare(found('q'), remote), packages({ p: [{ name: 's' }] }), denied],
    [declare(selected('p'), remote), packages({ p: [] }), denied],
    [declare(selected('p'), remote), packages({ q: [{ name: 's' }] }), denied],
    [declare(selected('constructor'), remote), packages({}), denied],
    [declare(selected('p'), remote), packages({ p: [{ name: 's' }] }, []), denied],
    [declare(config, remote), packages({}), allowed],
    // What is off already keeps its own reason.
    [declare(config, { ...remote, enabled: false }), nothing, 'disabled (own)'],
    [declare(config, remote), { ...nothing, vetoes: new Set(['s']) }, 'disabled (name-veto)'],
  ]
  table.forEach(([action, authority, expected], row) => {
    expect([row, outcome(action, authority)]).toEqual([row, expected])
  })
})

test('a plugin lends nobody an account and lowers no caution', () => {
  const bold = { hosted: true, trustAnnotations: true, auth: 'account' } as const
  for (const plugin of [found('p'), selected('p')]) {
    const catalog = resolveRegistrations([declare(plugin, bold)])
    expect(catalog.definitions[0]).toMatchObject({ hosted: false, trustAnnotations: false, auth: 'none' })
    expect(catalog.registrations[0]?.ignored).toEqual(['hosted', 'trustAnnotations', 'auth'])
  }
  // Nor does it escape its environment by saying that it is hosted.
  expect(
    resolved([declare(selected('p'), { hosted: true, environment: 'box' })], {
      environments: { box: { kind: 'unavailable' } },
    }),
  ).toBe('p disabled (requirements)')
  for (const source of [config, compatibility, extension('e')]) {
    const catalog = resolveRegistrations([declare(source, bold)])
    expect(catalog.definitions[0]).toMatchObject(bold)
    expect(catalog.registrations[0]).not.toHaveProperty('ignored')
  }
  expect(resolveRegistrations([declare(found('p'), { auth: 'oauth', hosted: true })]).definitions[0]?.auth).toBe(
    'oauth',
  )
})

test('names stay in the order in which they were first spoken of', () => {
  const named = (name: string, source: RegistrationSource = config): RegistrationAction => ({
    kind: 'declare',
    source,
    definition: http(name, `https://${name}.example`),
  })
  const actions = [named('b'), remove(config, 'gone'), named('a'), named('b', extension('e')), named('c')]
  const { definitions, registrations } = resolveRegistrations(actions)
  expect(definitions.map(({ name }) => name)).toEqual(['b', 'a', 'c'])
  expect(registrations.map(({ name }) => name)).toEqual(['b', 'gone', 'a', 'c'])
  expect(resolveRegistrations([])).toEqual({ definitions: [], registrations: [], conflicts: [] })
})
