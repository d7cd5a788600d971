// Is what a client sends back an answer to what it was asked? Pure.
import type { JsonObject } from '../protocol.ts'
import { isObject } from '../validate.ts'

const ACTIONS = ['accept', 'decline', 'cancel']

/** Why this is no answer to a request of that method; undefined: it is one. Unknown members are let through. */
export function answerFault(method: string, answer: unknown): string | undefined {
  if (!isObject(answer)) return 'it must be an object'
  switch (method) {
    case 'elicitation/create':
      return ACTIONS.includes(answer['action'] as string) ? undefined : '"action" must be accept, decline or cancel'
    case 'sampling/createMessage':
      return typeof answer['role'] === 'string' && answer['content'] !== undefined
        ? undefined
        : '"role" and "content" are missing'
    case 'roots/list':
      return Array.isArray(answer['roots']) ? undefined : '"roots" must be a list'
    default:
      return undefined
  }
}

/** The answer under that key; `own` members only. */
export function responseFor(inputResponses: unknown, key: string): unknown {
  return isObject(inputResponses) && Object.hasOwn(inputResponses, key)
    ? (inputResponses as JsonObject)[key]
    : undefined
}
