/* said.h - how the collector's lines begin that the user of `syncline run` has to see
 * while the job runs; the launcher looks for them in the collector's log.
 */
#pragma once

#define SAID_NOT_STORING "not storing: "
#define SAID_STORING_AGAIN "storing again: "
