// What is told about the questions of servers. No answer of a person is ever in here.
import type { JsonObject } from '../base/index.ts'

/** A question of a server that waits for a person. Its texts come from the server; hidden characters are taken out. */
export interface PendingQuestion {
  /** Made by the host; unique in its process and not to be guessed. */
  readonly id: string
  /** The configured name, whatever the question says about itself. */
  readonly server: string
  readonly mode: 'form' | 'url'
  readonly message: string
  /** Of a form, with its defaults. */
  readonly requestedSchema?: JsonObject
  /** Names of form fields that look like secrets: servers must not ask for those in a form. */
  readonly secretFields: readonly string[]
  /** `https`, or `http` on this machine; never open it without a person's consent to this very address. */
  readonly url?: string
  readonly elicitationId?: string
  /** The server says that this is about an approval. */
  readonly asksForApproval: boolean
  /** Milliseconds of the epoch, as is `expiresAtMs`. */
  readonly askedAtMs: number
  /** When it is given up, if nobody else ends it before; absent while it is being shown to somebody. */
  readonly expiresAtMs?: number
}

/** How a question ended. */
export interface QuestionOutcome {
  readonly id: string
  readonly server: string
  readonly mode: 'form' | 'url'
  /** `none`: it was not answered but failed, or nobody waits for its answer any more. */
  readonly action: 'accept' | 'decline' | 'cancel' | 'none'
  /** Who ended it. `ask`: the callback of the host, or the client whose call it was. */
  readonly by: 'policy' | 'reviewer' | 'ask' | 'answer' | 'time' | 'server' | 'host'
  /** A stable word for why. */
  readonly reason: string
}
