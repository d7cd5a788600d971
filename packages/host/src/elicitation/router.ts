// What servers ask of the host: which handlers answer, and which capabilities are declared for them.
import { type JsonObject, withoutReservedMeta } from '../base/index.ts'
import { isRequestRefusal, requestRefusal, type ServerRequestHandler } from '../protocol/index.ts'

/** Answers to what servers ask of the host. A capability is declared only for a handler that is given. */
export interface HostHandlers {
  /** `elicitation/create`, in form and URL mode. */
  readonly elicit?: ServerRequestHandler
  /** `sampling/createMessage`. */
  readonly sample?: ServerRequestHandler
  /** `roots/list`. */
  readonly roots?: ServerRequestHandler
}

const INTERNAL_ERROR = -32603

/** Capabilities and handlers, as a session wants them. */
export interface ClientSide {
  readonly capabilities: JsonObject
  readonly handlers: Readonly<Record<string, ServerRequestHandler>>
}

/** Declares exactly what there is somebody to answer for: "nobody can answer" is not "declined". */
export function clientSide({ elicit, sample, roots }: HostHandlers): ClientSide {
  return {
    capabilities: {
      ...(elicit === undefined ? {} : { elicitation: { form: {}, url: {} } }),
      ...(sample === undefined ? {} : { sampling: {} }),
      ...(roots === undefined ? {} : { roots: {} }),
    },
    handlers: {
      ...(elicit === undefined ? {} : { 'elicitation/create': guarded(elicit) }),
      ...(sample === undefined ? {} : { 'sampling/createMessage': guarded(sample) }),
      ...(roots === undefined ? {} : { 'roots/list': guarded(roots) }),
    },
  }
}

/** A server never sets a key that is ours, and never reads why a handler of the host failed. */
function guarded(handler: ServerRequestHandler): ServerRequestHandler {
  return async (params, context) => {
    try {
      return await handler(withoutReservedMeta(params), context)
    } catch (error) {
      if (isRequestRefusal(error)) throw error
      throw requestRefusal(INTERNAL_ERROR, 'The client could not answer')
    }
  }
}
