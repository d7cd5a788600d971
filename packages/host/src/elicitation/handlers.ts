// What a host brings along to answer its servers.

import type { JsonObject } from '../base/index.ts'
import { withoutReservedMeta } from '../base/index.ts'
import type { PendingQuestion } from '../events/index.ts'
import {
  isRequestRefusal,
  requestRefusal,
  type ServerRequestContext,
  type ServerRequestHandler,
} from '../protocol/index.ts'

/** What the callback is told besides the question's parameters. `question` is the same, checked and without hidden characters. */
export interface AskContext extends ServerRequestContext {
  readonly question: PendingQuestion
}

/**
 * Shows a question to a person and gives the answer. `undefined`: it cannot be shown now; the question stays open, for `Host.answer`.
 * What is thrown ends the question with an error. The signal aborts when nobody waits for the answer any more.
 */
export type AskCallback = (params: JsonObject, context: AskContext) => Promise<JsonObject | undefined>

/** Answers to what servers ask of the host. A capability is declared only for a handler that is given. */
export interface HostHandlers {
  /** `elicitation/create`, in form and URL mode, for what the trust policy leaves to a person. */
  readonly elicit?: AskCallback
  /** `sampling/createMessage`. */
  readonly sample?: ServerRequestHandler
  /** `roots/list`. */
  readonly roots?: ServerRequestHandler
}

const INTERNAL_ERROR = -32603

/** The error that a server reads when something on this side failed: never why. */
export function couldNotAnswer(): Error {
  return requestRefusal(INTERNAL_ERROR, 'The client could not answer')
}

/** A server never sets a key that is ours, and never reads why a handler of the host failed. */
export function guarded(handler: ServerRequestHandler): ServerRequestHandler {
  return async (params, context) => {
    try {
      return await handler(withoutReservedMeta(params), context)
    } catch (error) {
      throw isRequestRefusal(error) ? error : couldNotAnswer()
    }
  }
}
