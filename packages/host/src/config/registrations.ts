// Which definition each name gets, when plugins, the configuration, old settings and extensions all have a say. Pure; every loser keeps its reason.
import { canonicalJson } from '../base/index.ts'
import { isAllowed, type RegistrationAuthority } from './authority.ts'
import type { ServerDefinition } from './definition.ts'
import type { RegistrationSource } from './registration-source.ts'

/** One thing that a source says, in the order in which it was said. */
export type RegistrationAction =
  | { readonly kind: 'declare'; readonly source: RegistrationSource; readonly definition: ServerDefinition }
  | { readonly kind: 'remove'; readonly source: RegistrationSource; readonly name: string }

/** Why a registration is off. `own`: it says so itself. */
export type DisabledReason = 'own' | 'name-veto' | 'requirements'

/** One who lost a name, and to what: a higher tier, the order within the tier, or a later word of the same weight. */
export interface ShadowedRegistration {
  readonly source: RegistrationSource
  readonly action: 'declare' | 'remove'
  readonly because: 'tier' | 'order' | 'later-action'
}

/** What became of one name. */
export interface ResolvedRegistration {
  readonly name: string
  /** Who won. */
  readonly source: RegistrationSource
  /** `removed`: the winner took the name away, there is no definition. */
  readonly outcome: 'enabled' | 'disabled' | 'removed'
  /** Of a disabled one. */
  readonly disabledBecause?: DisabledReason
  /** `enabled` is false for a disabled one. Absent: removed. */
  readonly definition?: ServerDefinition
  /** Settings of the winner that its source may not make, and that were left out. */
  readonly ignored?: readonly ('hosted' | 'trustAnnotations' | 'auth')[]
  /** Everybody else who had a say, the strongest first. */
  readonly shadowed: readonly ShadowedRegistration[]
}

/** Several of one tier wanted the same name. */
export interface RegistrationConflict {
  readonly name: string
  readonly tier: RegistrationSource['kind']
  /** All of this tier, the strongest first. */
  readonly contenders: readonly RegistrationSource[]
  /** Who has the name in the end, perhaps of a higher tier, and how. */
  readonly winner: RegistrationSource
  readonly outcome: ResolvedRegistration['outcome']
}

/** Every name with its winner. */
export interface RegistrationCatalog {
  /** Enabled and disabled ones, in the order in which their names were first spoken of. */
  readonly definitions: readonly ServerDefinition[]
  /** One for every name, removed ones included, in the same order. */
  readonly registrations: readonly ResolvedRegistration[]
  readonly conflicts: readonly RegistrationConflict[]
}

const TIERS: readonly RegistrationSource['kind'][] = [
  'discovered-plugin',
  'selected-plugin',
  'config',
  'compatibility',
  'extension',
]

/** Resolves every name. Nothing is started, and no definition is changed but for `enabled`, and for what its source may not say. */
export function resolveRegistrations(
  actions: readonly RegistrationAction[],
  authority: RegistrationAuthority = {},
): RegistrationCatalog {
  const byName = new Map<string, RankedAction[]>()
  actions.forEach((action, index) => {
    const name = nameOf(action)
    const ranked = { action, index }
    const others = byName.get(name)
    if (others === undefined) byName.set(name, [ranked])
    else others.push(ranked)
  })
  const resolved = [...byName].map(([name, said]) => resolveName(name, said.toSorted(byStrength), authority))
  const registrations = resolved.map(({ registration }) => registration)
  return {
    definitions: registrations.flatMap(({ definition }) => (definition === undefined ? [] : [definition])),
    registrations,
    conflicts: resolved.flatMap(({ conflicts }) => conflicts),
  }
}

/** Are these the same registration? Where it stands in a file does not matter; the root of its plugin does. */
export function sameRegistration(one: ServerDefinition, other: ServerDefinition): boolean {
  const key = ({ source: _place, ...definition }: ServerDefinition): string => canonicalJson(definition)
  return key(one) === key(other)
}

interface RankedAction {
  readonly action: RegistrationAction
  /** Its place among all actions. */
  readonly index: number
}

function nameOf(action: RegistrationAction): string {
  return action.kind === 'declare' ? action.definition.name : action.name
}

/** Strongest first: the tier, then the order within it, then the later word. */
function byStrength(one: RankedAction, other: RankedAction): number {
  return (
    tierOf(other) - tierOf(one) || orderOf(other.action.source) - orderOf(one.action.source) || other.index - one.index
  )
}

function tierOf({ action }: RankedAction): number {
  return TIERS.indexOf(action.source.kind)
}

/** The higher, the stronger. */
function orderOf(source: RegistrationSource): number {
  switch (source.kind) {
    case 'discovered-plugin':
    case 'selected-plugin':
      return -source.order
    case 'extension':
      return source.order
    case 'config':
    case 'compatibility':
      return 0
  }
}

function resolveName(
  name: string,
  said: readonly RankedAction[],
  authority: RegistrationAuthority,
): { registration: ResolvedRegistration; conflicts: RegistrationConflict[] } {
  const [winner, ...losers] = said
  if (winner === undefined) throw new RangeError(`nobody speaks of ${name}`)
  const shadowed = losers.map((loser) => shadowedBy(winner, loser))
  const registration: ResolvedRegistration = {
    name,
    source: winner.action.source,
    shadowed,
    ...outcomeOf(winner, said, authority),
  }
  const conflicts = TIERS.flatMap((tier) => {
    const contenders = said.filter(({ action }) => action.source.kind === tier).map(({ action }) => action.source)
    const { source, outcome } = registration
    return contenders.length < 2 ? [] : [{ name, tier, contenders, winner: source, outcome }]
  })
  return { registration, conflicts }
}

function shadowedBy(winner: RankedAction, { action }: RankedAction): ShadowedRegistration {
  const { source, kind } = action
  const because =
    source.kind !== winner.action.source.kind
      ? 'tier'
      : orderOf(source) === orderOf(winner.action.source)
        ? 'later-action'
        : 'order'
  return { source, action: kind, because }
}

function outcomeOf(
  winner: RankedAction,
  said: readonly RankedAction[],
  authority: RegistrationAuthority,
): Pick<ResolvedRegistration, 'outcome' | 'disabledBecause' | 'definition' | 'ignored'> {
  const { action } = winner
  if (action.kind === 'remove') return { outcome: 'removed' }
  const ignored = ignoredSettings(action.source, action.definition)
  const definition = without(action.definition, ignored)
  const disabledBecause = disabledReason(winner, definition, { said, authority })
  return {
    ...(disabledBecause === undefined
      ? { outcome: 'enabled', definition }
      : { outcome: 'disabled', disabledBecause, definition: { ...definition, enabled: false } }),
    ...(ignored.length === 0 ? {} : { ignored }),
  }
}

/** A plugin lends nobody an account and lowers no caution. */
function ignoredSettings(
  { kind }: RegistrationSource,
  { hosted, trustAnnotations, auth }: ServerDefinition,
): NonNullable<ResolvedRegistration['ignored']> {
  if (kind !== 'discovered-plugin' && kind !== 'selected-plugin') return []
  return [
    ...(hosted ? (['hosted'] as const) : []),
    ...(trustAnnotations ? (['trustAnnotations'] as const) : []),
    ...(auth === 'account' ? (['auth'] as const) : []),
  ]
}

function without(
  definition: ServerDefinition,
  ignored: NonNullable<ResolvedRegistration['ignored']>,
): ServerDefinition {
  if (ignored.length === 0) return definition
  const { auth } = definition
  return { ...definition, hosted: false, trustAnnotations: false, auth: auth === 'account' ? 'none' : auth }
}

function disabledReason(
  winner: RankedAction,
  definition: ServerDefinition,
  { said, authority }: { readonly said: readonly RankedAction[]; readonly authority: RegistrationAuthority },
): DisabledReason | undefined {
  if (!definition.enabled) return 'own'
  if (authority.vetoes?.has(definition.name) === true || isVetoed(said)) return 'name-veto'
  return isAllowed(definition, winner.action.source, authority) ? undefined : 'requirements'
}

/**
 * Whoever switches a server off in the configuration means the name, not this entry of it: what is laid over it later stays off, too.
 * Found plugins and the configuration are the ground; selected plugins, old settings and extensions are laid over it, in this order. A selected
 * plugin speaks for itself alone.
 */
function isVetoed(said: readonly RankedAction[]): boolean {
  return VETOING_LAYERS.some((layer) => {
    const strongest = said.find((one) => layerOf(one) === layer)
    return strongest?.action.kind === 'declare' && !strongest.action.definition.enabled
  })
}

function layerOf({ action }: RankedAction): number {
  return LAYERS[action.source.kind]
}

const LAYERS: Readonly<Record<RegistrationSource['kind'], number>> = {
  'discovered-plugin': 0,
  config: 0,
  'selected-plugin': 1,
  compatibility: 2,
  extension: 3,
}

/** All but that of selected plugins, and the last: nothing is laid over extensions. */
const VETOING_LAYERS: readonly number[] = [0, 2]
