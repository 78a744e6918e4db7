#!/usr/bin/env python3
"""A log with the steps of Megatron and the lines of NCCL between them, as most jobs write it: both are told."""
import gzip
import json
import os
import unittest

import test_import as base
import test_kineto
import test_megatron

NCCL = os.path.join(test_kineto.CUTS, "nccl_debug_rank0.log.gz")


class Both(test_kineto.Kineto):
    def setUp(self):
        super().setUp()
        with gzip.open(NCCL) as f:
            self.nccl = f.read()
        self.steps = test_megatron.log_lines(4, 4, 40.0, 100.0)

    def read(self, content, name="train.log"):
        r = base.call("import", self.file(name, content), "--db", self.db, "--force", "--keep-names", "--json")
        self.assertEqual(r.returncode, 0, r.stderr + r.stdout)
        tables = {t: self.sql(f"SELECT * FROM {t}") for t in ("nccl_rank", "nccl_hop", "megatron_step", "megatron_pipeline")}
        return json.loads(r.stdout)["inputs"][0], tables

    def test_both_are_told_whatever_comes_first(self):
        nccl, told = self.read(self.nccl)
        self.assertNotIn("Megatron", nccl["outcome"])
        steps, told_steps = self.read(self.steps)
        half = self.steps.index(b"\n iteration") + 1
        for content in (self.nccl + self.steps, self.steps + self.nccl, self.steps[:half] + self.nccl + self.steps[half:]):
            for packed in (False, True):
                both, tables = self.read(gzip.compress(content) if packed else content)
                self.assertIn("as Megatron log: ok", both["outcome"])
                self.assertEqual(both["format"], "NCCL log")
                self.assertEqual(both["events"], nccl["events"] + steps["events"])
                for t in ("nccl_rank", "nccl_hop"):
                    self.assertEqual(tables[t], told[t])
                for t in ("megatron_step", "megatron_pipeline"):
                    self.assertEqual(tables[t], told_steps[t])


if __name__ == "__main__":
    unittest.main(verbosity=2)
