// Names that a model can call: safe, unique, readable, and a function of nothing but a tool's own identity and of what it collides with.
// Pure, apart from the digest.
import { digestHex } from '../base/index.ts'

/** Who a tool (or a prompt) is. Equal identities are the same tool. */
export interface NameIdentity {
  /** The server's key in the configuration. */
  readonly server: string
  /** What the server's tools are grouped under; ordinarily the server's key. */
  readonly namespace: string
  /** For hosted servers: the connector behind the tool. */
  readonly connectorId?: string
  /** The part of the name that stands for the tool; ordinarily the raw name. */
  readonly callableName: string
  /** As the server calls it. */
  readonly rawName: string
}

/** A name in two parts, for models that know namespaces. */
export interface NamespacedName {
  readonly namespace: string
  readonly tool: string
}

/** How names are made. */
export interface NameStyle {
  /** Longest name in all, delimiter included, in characters. */
  readonly charsMax: number
  /** Put before every namespace that does not begin with it already. */
  readonly prefix: string
  /** Servers that go without the prefix, by their keys in the configuration. Default none. */
  readonly unprefixed?: ReadonlySet<string>
  /** `bare`: what separated a connector from its tool is left out; the rendering has a separator of its own. Default `kept`. */
  readonly separators?: 'kept' | 'bare'
}

/** `SERVER__TOOL`: for the gateway, the command and adapters. Clients put prefixes of their own before it. */
export const FLAT_STYLE: NameStyle = { charsMax: 48, prefix: '', separators: 'bare' }
/** `mcp__SERVER` and `TOOL`. */
export const NAMESPACED_STYLE: NameStyle = { charsMax: 64, prefix: 'mcp__' }
/** Shorter limits leave no room for a readable name and a digest. */
export const NAME_CHARS_MIN = 24
/** No client takes longer names. */
export const NAME_CHARS_LIMIT = 128

const DELIMITER = '__'
const DIGEST_CHARS = 12
/** `_` and a digest. */
const SUFFIX_CHARS = DIGEST_CHARS + 1
/** What stays of a tool's name at least when a name has to be cut. */
const READABLE_CHARS = 8
/** More rounds mean that somebody searches for collisions of SHA-1. */
const ROUNDS_MAX = 16

/**
 * One name for each identity, in their order. Identities must differ from each other.
 *
 * A name is kept as it is when it fits and nobody else wants it. Everybody who wants the same name gets a digest of the own identity
 * behind it; so does a name that has to be cut. Hence the order does not matter, and one server more renames only what collides with it.
 */
export function assignNames(identities: readonly NameIdentity[], style: NameStyle): NamespacedName[] {
  const entries = entriesOf(identities)
  settleNamespaces(entries, style)
  if (style.separators === 'bare') for (const entry of entries) entry.tool = bareTool(entry)
  for (const entry of entries) entry.name = render(entry, style)
  settleNames(entries, style)
  return entries.map(({ name }) => name)
}

/** The name as one word. */
export function flatName({ namespace, tool }: NamespacedName): string {
  return `${namespace}${DELIMITER}${tool}`
}

const SAFE = /^[A-Za-z0-9_-]+$/

/** Every character that is not allowed in a name becomes `_`; nothing at all becomes `_` too. */
export function safeName(text: string): string {
  if (text === '') return '_'
  return SAFE.test(text) ? text : text.replace(/[^A-Za-z0-9_-]/gu, '_')
}

interface Entry {
  readonly namespaceId: string
  readonly identity: NameIdentity
  namespace: string
  tool: string
  /** 0: as it is; n: with the n-th digest of the identity. */
  round: number
  name: NamespacedName
}

const UNNAMED: NamespacedName = { namespace: '', tool: '' }

/** Neighbours are mostly of one server: what depends on the server alone is made once for all of them. */
function entriesOf(identities: readonly NameIdentity[]): Entry[] {
  let last: NameIdentity | undefined
  let namespaceId = ''
  let namespace = ''
  return identities.map((identity) => {
    if (last === undefined || !sharesNamespace(last, identity)) {
      namespaceId = [identity.server, identity.namespace, identity.connectorId ?? ''].join('\0')
      namespace = safeName(identity.namespace)
    }
    last = identity
    return { namespaceId, identity, namespace, tool: safeName(identity.callableName), round: 0, name: UNNAMED }
  })
}

function sharesNamespace(one: NameIdentity, other: NameIdentity): boolean {
  return one.server === other.server && one.namespace === other.namespace && one.connectorId === other.connectorId
}

/** Different namespaces that look the same all get a digest; then the prefix. */
function settleNamespaces(entries: readonly Entry[], { prefix, unprefixed }: NameStyle): void {
  const wanted = new Map(entries.map(({ namespaceId, namespace }) => [namespaceId, namespace]))
  const bare = new Set(unprefixed === undefined || unprefixed.size === 0 ? [] : unprefixedIds(entries, unprefixed))
  const owners = new Map<string, number>()
  for (const namespace of wanted.values()) owners.set(namespace, (owners.get(namespace) ?? 0) + 1)
  const settled = new Map<string, string>()
  for (const [id, namespace] of wanted) {
    const own = (owners.get(namespace) ?? 0) > 1 ? withSuffix(namespace, id) : namespace
    settled.set(id, own.startsWith(prefix) || bare.has(id) ? own : prefix + own)
  }
  for (const entry of entries) entry.namespace = settled.get(entry.namespaceId) ?? entry.namespace
}

function unprefixedIds(entries: readonly Entry[], unprefixed: ReadonlySet<string>): string[] {
  return entries.filter(({ identity }) => unprefixed.has(identity.server)).map(({ namespaceId }) => namespaceId)
}

/** `_list` behind `apps__calendar` is `list`; a tool of an ordinary server is called what it is called. */
function bareTool({ tool, identity }: Pick<Entry, 'tool' | 'identity'>): string {
  return identity.connectorId === undefined ? tool : tool.replace(/^[_-]+(?=[^_-])/, '')
}

/** Behind a namespace, but before the delimiter with which it may end. */
function withSuffix(namespace: string, identity: string): string {
  const [head, tail] = namespace.endsWith(DELIMITER) ? [namespace.slice(0, -2), DELIMITER] : [namespace, '']
  return `${head}_${digest(identity)}${tail}`
}

/** Everybody who wants the same name takes the next digest, until all differ. */
function settleNames(entries: readonly Entry[], style: NameStyle): void {
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const wanted = new Map<string, Entry>()
    const contested = new Set<Entry>()
    for (const entry of entries) {
      const key = flatName(entry.name)
      const first = wanted.get(key)
      if (first === undefined) wanted.set(key, entry)
      else contested.add(first).add(entry)
    }
    if (contested.size === 0) return
    for (const entry of contested) {
      entry.round += 1
      entry.name = render(entry, style)
    }
  }
}

function render({ namespace, tool, namespaceId, identity, round }: Entry, { charsMax }: NameStyle): NamespacedName {
  if (round === 0 && namespace.length + DELIMITER.length + tool.length <= charsMax) return { namespace, tool }
  const id = [namespaceId, identity.callableName, identity.rawName].join('\0')
  const suffix = `_${digest(round <= 1 ? id : `${id}\0${round - 1}`)}`
  const room = charsMax - DELIMITER.length - SUFFIX_CHARS
  const toolChars = Math.max(room - namespace.length, Math.min(tool.length, READABLE_CHARS))
  const head = tool.slice(0, toolChars)
  return { namespace: namespace.slice(0, room - head.length), tool: head + suffix }
}

function digest(text: string): string {
  return digestHex(text, DIGEST_CHARS, 'sha1')
}

/** Why a tool is not called what its server calls it. */
export type NameChange =
  /** Characters that no name may have were replaced. */
  | 'cleaned'
  /** Another server, or connector, has a namespace that looks the same. */
  | 'namespace-collision'
  /** Another tool wants the same name. */
  | 'collision'
  /** The name was too long. */
  | 'cut'

/** Why the name that an identity got is not its own words; undefined when it is. For people who ask, not for every tool. */
export function explainName(identity: NameIdentity, given: NamespacedName, style: NameStyle): NameChange | undefined {
  const alone = entriesOf([identity])
  settleNamespaces(alone, style)
  const [own] = alone
  if (own === undefined) return undefined
  const tool = style.separators === 'bare' ? bareTool(own) : own.tool
  const isOwnNamespace = given.namespace === own.namespace
  if (isOwnNamespace && given.tool === tool)
    return tool === identity.callableName && own.namespace.endsWith(identity.namespace) ? undefined : 'cleaned'
  if (own.namespace.length + DELIMITER.length + tool.length > style.charsMax) return 'cut'
  return isOwnNamespace ? 'collision' : 'namespace-collision'
}
