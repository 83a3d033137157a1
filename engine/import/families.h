// SPDX-License-Identifier: Apache-2.0
// Which family of networks a file is of.
#ifndef IMPORT_FAMILIES_H
#define IMPORT_FAMILIES_H

#include "importer.h"

// By architectures, or what a file without them means by its model_type, into m->architecture. NULL: refused.
import_family family_of_config(importer *m);
// The same of the metadata of a GGUF file: its general.architecture, and whether it has experts.
import_family family_of_gguf(importer *m, const char *word, bool has_experts);
// Whether there is such a family.
bool family_knows_gguf(const char *word, bool has_experts);

#endif
