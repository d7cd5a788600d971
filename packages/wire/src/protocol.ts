// The shapes of the protocol, as far as this package and its users rely on them. Everything else travels by reference, unread.

/** A JSON object whose members nobody has checked yet. */
export type JsonObject = Record<string, unknown>

/** The two generations of the protocol: sessions begun by `initialize`, or stateless requests that carry their own metadata. */
export type Era = 'legacy' | 'modern'

/** The version of the modern era. */
export const MODERN_VERSION = '2026-07-28'
/** The versions of the legacy era, newest first; the first is the one that is offered. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']

/** What to keep for the next start of the same server: with it there is no probe. */
export interface EraVerdict {
  era: Era
  version: string
}

/** The `error` member of a JSON-RPC answer. */
export interface RpcError {
  code: number
  message: string
  data?: unknown
}

/** What a listing can hold. */
export type ListKind = 'tools' | 'resources' | 'resourceTemplates' | 'prompts'

/** A tool as its server lists it. Strangers among its members are kept. */
export interface Tool extends JsonObject {
  name: string
  title?: string
  description?: string
  inputSchema: JsonObject
  outputSchema?: JsonObject
  annotations?: JsonObject
  _meta?: JsonObject
}

/** A resource as its server lists it. */
export interface Resource extends JsonObject {
  uri: string
  name: string
  title?: string
  description?: string
  mimeType?: string
  _meta?: JsonObject
}

/** A family of resources as its server lists it. */
export interface ResourceTemplate extends JsonObject {
  uriTemplate: string
  name: string
  title?: string
  description?: string
  mimeType?: string
  _meta?: JsonObject
}

/** A prompt as its server lists it. */
export interface Prompt extends JsonObject {
  name: string
  title?: string
  description?: string
  arguments?: PromptArgument[]
  _meta?: JsonObject
}

/** One argument of a prompt. */
export interface PromptArgument extends JsonObject {
  name: string
  title?: string
  description?: string
  required?: boolean
}

/** A block of content: text, image, audio, a link or an embedded resource; unknown types are passed on. */
export interface ContentBlock extends JsonObject {
  type: string
}

/** The answer of a tool. `isError` is the tool's own failure, as opposed to a failed call. */
export interface ToolResult extends JsonObject {
  content: ContentBlock[]
  structuredContent?: unknown
  isError?: boolean
  _meta?: JsonObject
}

/** Which item of a listing is of which type. */
export interface ListItems {
  tools: Tool
  resources: Resource
  resourceTemplates: ResourceTemplate
  prompts: Prompt
}
