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
}

/** `SERVER__TOOL`: for the gateway, the command and adapters. Clients put prefixes of their own before it. */
export const FLAT_STYLE: NameStyle = { charsMax: 48, prefix: '' }
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
  const entries = identities.map(entryOf)
  settleNamespaces(entries, style)
  for (const entry of entries) entry.name = render(entry, style)
  settleNames(entries, style)
  return entries.map(({ name }) => name)
}

/** The name as one word. */
export function flatName({ namespace, tool }: NamespacedName): string {
  return `${namespace}${DELIMITER}${tool}`
}

/** Every character that is not allowed in a name becomes `_`; nothing at all becomes `_` too. */
export function safeName(text: string): string {
  return text === '' ? '_' : text.replace(/[^A-Za-z0-9_-]/gu, '_')
}

interface Entry {
  readonly namespaceId: string
  readonly id: string
  namespace: string
  readonly tool: string
  /** 0: as it is; n: with the n-th digest of the identity. */
  round: number
  name: NamespacedName
}

function entryOf({ server, namespace, connectorId = '', callableName, rawName }: NameIdentity): Entry {
  const namespaceId = [server, namespace, connectorId].join('\0')
  const entry = {
    namespaceId,
    id: [namespaceId, callableName, rawName].join('\0'),
    namespace: safeName(namespace),
    tool: safeName(callableName),
    round: 0,
  }
  return { ...entry, name: { namespace: entry.namespace, tool: entry.tool } }
}

/** Different namespaces that look the same all get a digest; then the prefix. */
function settleNamespaces(entries: readonly Entry[], { prefix }: NameStyle): void {
  const owners = new Map<string, Set<string>>()
  for (const { namespace, namespaceId } of entries) {
    const ids = owners.get(namespace)
    if (ids === undefined) owners.set(namespace, new Set([namespaceId]))
    else ids.add(namespaceId)
  }
  const settled = new Map<string, string>()
  for (const entry of entries) {
    let namespace = settled.get(entry.namespaceId)
    if (namespace === undefined) {
      namespace = entry.namespace
      if ((owners.get(namespace)?.size ?? 0) > 1) namespace = withSuffix(namespace, entry.namespaceId)
      if (!namespace.startsWith(prefix)) namespace = prefix + namespace
      settled.set(entry.namespaceId, namespace)
    }
    entry.namespace = namespace
  }
}

/** Behind a namespace, but before the delimiter with which it may end. */
function withSuffix(namespace: string, identity: string): string {
  const [head, tail] = namespace.endsWith(DELIMITER) ? [namespace.slice(0, -2), DELIMITER] : [namespace, '']
  return `${head}_${digest(identity)}${tail}`
}

/** Everybody who wants the same name takes the next digest, until all differ. */
function settleNames(entries: readonly Entry[], style: NameStyle): void {
  let contested = entries
  for (let round = 1; round <= ROUNDS_MAX && contested.length > 0; round++) {
    const wanted = new Map<string, Entry[]>()
    for (const entry of entries) {
      const key = flatName(entry.name)
      const group = wanted.get(key)
      if (group === undefined) wanted.set(key, [entry])
      else group.push(entry)
    }
    contested = [...wanted.values()].filter((group) => group.length > 1).flat()
    for (const entry of contested) {
      entry.round += 1
      entry.name = render(entry, style)
    }
  }
}

function render({ namespace, tool, id, round }: Entry, { charsMax }: NameStyle): NamespacedName {
  if (round === 0 && namespace.length + DELIMITER.length + tool.length <= charsMax) return { namespace, tool }
  const suffix = `_${digest(round <= 1 ? id : `${id}\0${round - 1}`)}`
  const room = charsMax - DELIMITER.length - SUFFIX_CHARS
  const toolChars = Math.max(room - namespace.length, Math.min(tool.length, READABLE_CHARS))
  const head = tool.slice(0, toolChars)
  return { namespace: namespace.slice(0, room - head.length), tool: head + suffix }
}

function digest(text: string): string {
  return digestHex(text, DIGEST_CHARS, 'sha1')
}
