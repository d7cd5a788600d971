// What an answer to a question may look like. Pure. No text here ever holds a value of an answer.
import { isObject, type JsonObject } from '../base/index.ts'
import { formFault } from './form.ts'
import type { QuestionContent } from './read-question.ts'

/** The answer to a question of a server. */
export interface QuestionAnswer {
  readonly action: 'accept' | 'decline' | 'cancel'
  /** The fields of an accepted form, by name. */
  readonly content?: JsonObject
  /** For the server. */
  readonly _meta?: JsonObject
}

/** An answer that can be sent, or what is wrong with it. */
export type ReadAnswer =
  | { readonly kind: 'answer'; readonly answer: QuestionAnswer }
  | { readonly kind: 'wrong'; readonly why: string }

/** The shape alone, as servers of both eras take it; absent members are left out and strangers dropped. */
export function readAnswer(given: unknown): ReadAnswer {
  if (!isObject(given)) return wrong('an answer is an object with an action')
  const { action, content, _meta } = given
  if (action !== 'accept' && action !== 'decline' && action !== 'cancel')
    return wrong('the action of an answer is accept, decline or cancel')
  if (content !== undefined && !isObject(content)) return wrong('the content of an answer is an object')
  if (_meta !== undefined && !isObject(_meta)) return wrong('the _meta of an answer is an object')
  return {
    kind: 'answer',
    answer: {
      action,
      ...(content === undefined || action !== 'accept' ? {} : { content }),
      ...(_meta === undefined ? {} : { _meta }),
    },
  }
}

/** Shape, and whether it answers this question: what a form asks for and nothing else, and nothing at all for an address. */
export function matchAnswer(given: unknown, question: QuestionContent): ReadAnswer {
  const read = readAnswer(given)
  if (read.kind === 'wrong') return read
  const hasContent = isObject(given) && given['content'] !== undefined
  if (read.answer.action !== 'accept') return hasContent ? wrong('only an accepted form has content') : read
  if (question.mode === 'url') return hasContent ? wrong('an address is accepted without content') : read
  const content = read.answer.content ?? {}
  const fault = formFault(question.requestedSchema ?? {}, content)
  return fault === undefined ? { kind: 'answer', answer: { ...read.answer, content } } : wrong(fault)
}

/** What a reviewer said. */
export type ReadReview =
  | { readonly kind: 'answer'; readonly answer: QuestionAnswer }
  /** The reviewer leaves it to the person. */
  | { readonly kind: 'open' }
  | { readonly kind: 'wrong'; readonly why: string }

/** Only an exact answer counts, and an address is a person's to accept. */
export function readReview(given: unknown, question: QuestionContent): ReadReview {
  if (given === undefined || given === null) return { kind: 'open' }
  const read = matchAnswer(given, question)
  if (read.kind === 'answer' && read.answer.action === 'accept' && question.mode === 'url')
    return wrong('a reviewer does not accept an address')
  return read
}

function wrong(why: string): { readonly kind: 'wrong'; readonly why: string } {
  return { kind: 'wrong', why }
}
