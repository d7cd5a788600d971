// What servers offer, in the form that everybody above the catalog sees.
import type { JsonObject } from '../base/index.ts'
import type { ApprovalMode } from '../config/index.ts'

/** What a hosted server says a tool belongs to. Texts are trimmed; those that are empty are absent. */
export interface CatalogConnector {
  readonly id: string
  readonly name?: string
  readonly description?: string
}

/** One tool, under the name the model sees. */
export interface CatalogTool {
  /** Flat and unique in its binding: `SERVER__TOOL`, charset `[A-Za-z0-9_-]`. */
  readonly name: string
  readonly server: string
  /** As the server names it; this is what goes over the wire. */
  readonly rawName: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: JsonObject
  readonly outputSchema?: JsonObject
  readonly annotations?: JsonObject
  readonly meta?: JsonObject
  /** `cached`: listed from an earlier run; checked live before its first call. */
  readonly state: 'live' | 'cached'
  /** False when the server asks that models do not see it (`_meta.ui.visibility` without `model`). */
  readonly visibleToModel: boolean
  /** When it needs a person's consent: its own mode in the configuration, else that of its server. */
  readonly approvalMode: ApprovalMode
  /** It may run beside other calls of its server; only the configuration says so. */
  readonly parallelToolCalls: boolean
  /** `stdio`, or the origin of the server's URL. */
  readonly origin?: string
  /** Where the server runs; `local` is this machine. */
  readonly environment: string
  /** What the tool acts on behind a hosted server; other servers have none. */
  readonly connector?: CatalogConnector
  /** Names, for people, of the plugins that the tool is part of. */
  readonly plugins?: readonly string[]
  /** The tool as the server sent it, by reference. Server text: clean it before a person or a model sees it. */
  readonly definition: JsonObject
}

/** One resource. Its URI is not rewritten; `definition._meta["convoke/server"]` says whose it is. */
export interface CatalogResource {
  readonly server: string
  readonly uri: string
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  /** The resource as the server sent it, with `_meta["convoke/server"]` added and other `convoke/*` keys removed. */
  readonly definition: JsonObject
}

/** One resource template. */
export interface CatalogResourceTemplate {
  readonly server: string
  readonly uriTemplate: string
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  /** The template as the server sent it, with `_meta["convoke/server"]` added and other `convoke/*` keys removed. */
  readonly definition: JsonObject
}

/** One prompt, named like a tool. */
export interface CatalogPrompt {
  /** Flat and unique: `SERVER__PROMPT`. */
  readonly name: string
  readonly server: string
  readonly rawName: string
  readonly title?: string
  readonly description?: string
  /** The prompt as the server sent it, with `_meta["convoke/server"]` added and other `convoke/*` keys removed. */
  readonly definition: JsonObject
}

/** What all servers answered, and who did not. */
export interface Aggregate<Item> {
  readonly items: readonly Item[]
  readonly failures: readonly { readonly server: string; readonly code: string; readonly message: string }[]
}
