// What a gateway's host declares to its servers, and what it answers when it cannot be known whose call a question belongs to.
import { type HostHandlers, requestRefusal } from '@convoke/host'
import { METHOD_NOT_FOUND } from '@convoke/wire/server'

/**
 * Give these to `createHost`: servers are told that they may ask, and each question goes to the client whose call it belongs to. One that belongs to no
 * call is declined, refused, or answered with no roots.
 */
export const gatewayHandlers: Required<HostHandlers> = {
  elicit: async () => ({
    action: 'decline',
    _meta: { 'convoke/reason': 'This question belongs to no call of a client' },
  }),
  sample: async () => {
    throw requestRefusal(METHOD_NOT_FOUND, 'This request belongs to no call of a client')
  },
  roots: async () => ({ roots: [] }),
}

/** The same for a gateway with `questions: 'park'`: an elicitation that belongs to no call stays open, for `Host.answer`. */
export const parkingHandlers: Required<HostHandlers> = { ...gatewayHandlers, elicit: async () => undefined }
